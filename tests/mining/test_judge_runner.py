"""Parallel calls: order, limits, budgets, failures and interruptions."""

import threading
from dataclasses import dataclass, field
from threading import Barrier, Event, Lock

import pytest

from dartboard.deadline import check
from dartboard.errors import BudgetError, ConfigError, DatasetError, EndpointError
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.errors import RefusedError
from dartboard.llm.usage import Usage, total_usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.journaled_judge import JournaledJudge, journaled
from dartboard.mining.judge_runner import Task, estimate, judge_many
from dartboard.mining.judges import AnswerJudge, EnsembleJudge
from dartboard.mining.judges.base import Verdict
from dartboard.mining.verdict_journal import Journal
from tests.llm.test_call_limits import Clock
from tests.mining.faulty_run import door_judge
from tests.mining.faulty_server import FaultyServer, door_tasks

TASKS = [Task(Case(id=str(at), question=f"{at}?"), (Document("d", str(at)),)) for at in range(60)]


@dataclass
class Acts:
    """A judge that does as told for each case, and YES otherwise."""

    acts: dict = field(default_factory=dict)
    name: str = "acts"
    asked: list = field(default_factory=list)

    def judge(self, case, contexts, *, attempt=0):
        self.asked.append(case.id)
        act = self.acts.get(case.id)
        if isinstance(act, Exception):
            raise act
        if act is not None:
            act()
        return Verdict(label="YES", reason=case.id)


def ids(judged):
    return [task.case.id for task, _ in judged]


def test_results_come_in_the_order_of_the_tasks():
    gate = Event()
    judge = Acts({"0": gate.wait, "7": gate.set})
    judged = list(judge_many(judge, TASKS, CallLimiter(CallLimits(concurrency=4))))
    assert ids(judged) == [str(at) for at in range(60)]
    assert [verdict.reason for _, verdict in judged] == ids(judged)
    assert judge.asked[0] == "0"


def test_so_many_at_once_and_no_more():
    barrier, lock, now, most = Barrier(3), Lock(), [0], [0]

    def together():
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        barrier.wait(60)
        with lock:
            now[0] -= 1

    list(
        judge_many(
            Acts({str(at): together for at in range(60)}), TASKS, CallLimiter(CallLimits(concurrency=3))
        )
    )
    assert most[0] == 3


def test_tasks_are_taken_as_they_are_needed():
    taken = []

    def endless():
        for task in TASKS * 1000:
            taken.append(task)
            yield task

    judged = judge_many(Acts(), endless(), CallLimiter(CallLimits(concurrency=2)))
    assert ids([next(judged), next(judged)]) == ["0", "1"]
    judged.close()
    assert len(taken) < 40


def test_progress_is_told():
    heard = []
    limiter = CallLimiter()
    list(judge_many(Acts(), TASKS, listen=lambda *heard_now: heard.append(heard_now), limiter=limiter))
    assert heard == [(done, 60) for done in range(1, 61)]
    assert limiter.usage == Usage()


def test_a_failed_call_leaves_the_others_alone():
    down = EndpointError("it is down")
    judged = []
    with pytest.raises(EndpointError, match=r"2 calls failed, the first with: it is down. 58 verdicts"):
        for pair in judge_many(Acts({"3": down, "9": down}), TASKS):
            judged.append(pair)
    assert len(judged) == 58
    assert "3" not in ids(judged)


def test_an_endpoint_that_stays_down_ends_the_run():
    judge = Acts({str(at): EndpointError("down") for at in range(20, 60)})
    judged = []
    with pytest.raises(EndpointError, match="calls in a row failed"):
        for pair in judge_many(judge, TASKS, CallLimiter(CallLimits(concurrency=1))):
            judged.append(pair)
    assert len(judged) == 20
    assert len(judge.asked) == 30


@pytest.mark.parametrize("error", [RefusedError("bad key"), BudgetError("no money")])
def test_what_cannot_get_better_ends_the_run_at_once(error):
    judge = Acts({"5": error})
    judged = []
    with pytest.raises(type(error), match=str(error)):
        for pair in judge_many(judge, TASKS, CallLimiter(CallLimits(concurrency=1))):
            judged.append(pair)
    assert ids(judged) == ["0", "1", "2", "3", "4"]
    assert judge.asked == ["0", "1", "2", "3", "4", "5"]


def test_other_errors_are_not_swallowed():
    with pytest.raises(DatasetError, match="damaged"):
        list(judge_many(Acts({"5": DatasetError("damaged")}), TASKS))


def test_an_interruption_keeps_what_is_finished(tmp_path):
    """Ctrl-C: calls under way are waited for, waiting ones wake up, and all that was paid is on disk."""
    started, slow = Event(), Event()

    def wait():
        started.set()
        slow.wait(60)

    def endless():
        while True:
            check()
            slow.wait(0.01)  # timing: a step of work, of any length

    with Journal.open(tmp_path / "j") as journal:
        judge = JournaledJudge(Acts({"2": wait, "3": endless}), journal)
        judged = judge_many(judge, TASKS, CallLimiter(CallLimits(concurrency=3)))
        assert ids([next(judged), next(judged)]) == ["0", "1"]
        assert started.wait(60)
        threading.Timer(0.05, slow.set).start()
        with pytest.raises(KeyboardInterrupt):
            judged.throw(KeyboardInterrupt())
        kept = len(journal)
    assert kept >= 3
    with Journal.open(tmp_path / "j", resume=True) as journal:
        again = Acts()
        assert len(list(judge_many(JournaledJudge(again, journal), TASKS))) == 60
    assert len(again.asked) == 60 - kept


def test_a_budget_in_money_is_never_exceeded_by_parallel_calls(tmp_path):
    tasks = door_tasks(200)
    with FaultyServer(seed=1, faults=0.2) as server, door_judge(server.url) as judge:
        with Journal.open(tmp_path / "j") as journal:
            limiter = CallLimiter(CallLimits(concurrency=8, budget_cost=0.2))
            judged = []
            with pytest.raises(BudgetError, match=r"of 0\.2000 are spent.*Resume with a larger one"):
                for pair in judge_many(JournaledJudge(judge, journal), tasks, limiter=limiter):
                    judged.append(pair)
            assert 0 < len(judged) == len(journal) < 200
            first = journal.usage
        assert first == limiter.usage
        assert 0.02 < first.cost <= 0.2
        assert first.calls == server.books["delivered"]
        with Journal.open(tmp_path / "j", resume=True) as journal:
            resumed = JournaledJudge(judge, journal)
            limiter = CallLimiter(CallLimits(budget_cost=10.0), spent=journal.usage)
            assert [task for task, _ in judge_many(resumed, tasks, limiter=limiter)] == tasks
            total = journal.usage
        assert total.calls == server.books["delivered"]
        assert total == total_usage([first, limiter.usage])


def test_a_budget_in_tokens_and_one_without_prices():
    with FaultyServer() as server, door_judge(server.url) as judge:
        with pytest.raises(BudgetError, match=r"of 6000 tokens are spent"):
            list(judge_many(judge, door_tasks(50), CallLimiter(CallLimits(budget_tokens=6000))))
        assert 0 < server.books["prompt_tokens"] + server.books["completion_tokens"] <= 6000
        judge.chat.prices = None
        with pytest.raises(ConfigError, match="give prices"):
            list(judge_many(judge, door_tasks(5), CallLimiter(CallLimits(budget_cost=1.0))))


def test_a_retry_after_is_waited_for_by_the_whole_run():
    clock, held = Clock(), []

    class Watched(CallLimiter):
        def hold(self, seconds):
            held.append(seconds)
            super().hold(seconds)

    limiter = Watched(CallLimits(concurrency=1), clock=clock, sleep=clock.sleep)
    with FaultyServer() as server, door_judge(server.url) as judge:
        judge.chat.endpoint._patience = type(judge.chat.endpoint._patience)(longest_wait=30)
        once = [(429, {"retry-after": "7"}, b"slow down")]
        server.override = lambda body: once.pop() if once else None
        assert len(list(judge_many(judge, door_tasks(2), limiter=limiter))) == 2
    assert held == [7]
    assert 107 <= clock.now < 108


def test_estimates_before_the_first_call(tmp_path):
    tasks = door_tasks(30)
    with FaultyServer() as server, door_judge(server.url) as judge:
        guess = estimate(judge, tasks)
        assert not server.bodies
        assert (guess.tasks, guess.known, guess.usage.calls) == (30, 0, 30)
        with Journal.open(tmp_path / "j") as journal:
            alone = JournaledJudge(judge, journal)
            list(judge_many(alone, tasks[:10]))
            rest = estimate(alone, tasks)
            both = journaled(EnsembleJudge([AnswerJudge(), judge]), journal)
            assert estimate(both, tasks).usage.calls == 20
            list(judge_many(both, tasks[:3]))
            assert estimate(both, tasks).known == 3
        assert (rest.known, rest.usage.calls) == (10, 20)
        assert 0.5 < guess.usage.input_tokens / (3 * server.books["prompt_tokens"]) < 2
    assert estimate(AnswerJudge(), tasks).usage == Usage()
    assert estimate(Acts(), tasks).usage == Usage()
