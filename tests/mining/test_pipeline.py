"""A whole run: what is found, what is written into the data set, and that stopping it loses nothing."""

from dataclasses import replace

import pytest

from dartboard.errors import BudgetError, ConfigError
from dartboard.evaluation import hit_rate_at_k
from dartboard.llm.call_limits import CallLimits
from dartboard.llm.chat import ChatAnswer
from dartboard.llm.journal import Journal
from dartboard.llm.usage import Usage
from dartboard.mining.candidates import extract, with_imports
from dartboard.mining.cases import Case, Check
from dartboard.mining.context_pool import PoolSettings
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.package_corpus import PackageCorpus
from dartboard.mining.dataset_writer import dump, write_dataset
from dartboard.mining.judges import AnswerJudge, ChatJudge, CheckJudge, EnsembleJudge, OpenAIJudge
from dartboard.mining.judges.base import Verdict
from dartboard.mining.judges.ensemble import close_judge, journaled
from dartboard.mining.judges.partial_solution import PartialSolution
from dartboard.mining.pipeline import MiningSettings, estimate_run, mine, total
from dartboard.mining.validation import validate
from tests.mining.doors import SMALL, cases, house, raw
from tests.mining.faulty_run import QUICK
from tests.mining.faulty_server import FaultyServer
from tests.mining.packages import write_package
from tests.models import WordBag

CALM = CallLimits(concurrency=1)


@pytest.fixture
def found(tmp_path):
    return mine(raw(tmp_path), AnswerJudge(), corpus=house())


def by_id(mined):
    return {pair.id: pair for pair in mined.pairs}


def test_every_context_is_on_the_right_side(found):
    for pair in found.pairs[:4]:
        door = pair.id.removeprefix("door:")
        assert [one.fqn for one in pair.positive_ctxs] == [f"door-{door}.md"]
        assert pair.positive_ctxs[0].evidence == f"The code of door {door} is {pair.answers[0]}."
        assert (
            pair.negative_ctxs
            and {one.verdict for one in pair.negative_ctxs} == {"NO"}
            and not pair.unsure_ctxs
        )
        assert pair.kernel == (f"door-{door}.md",) and pair.kernel_status == "minimal"


def test_a_question_of_two_parts_has_a_kernel_of_two(found):
    pair = by_id(found)["both"]
    assert pair.kernel == ("door-5.md", "door-6.md") and pair.kernel_status == "minimal"
    assert [(one.fqn, one.verdict, one.part_of_kernel) for one in pair.positive_ctxs] == [
        ("door-5.md", "NO", True),
        ("door-6.md", "NO", True),
    ]
    assert (
        pair.kernels["expansion"].evidence.count("The code of door") == 2
        and pair.kernels["expansion"].judge == "answers"
    )


def test_controls_are_in_the_data_set(found, tmp_path):
    assert found.controls.false_positive.rate == 0 == found.controls.false_negative.rate
    assert found.controls.false_positive.decided == 3 * 5
    assert found.controls.by_kind["stuffed"].high > 0 and found.controls.errors == ()
    assert validate(write_dataset(found, tmp_path)) == []


def test_a_question_that_answers_itself_is_marked(tmp_path):
    given = Case(id="gift", question="Is 1234 the code of door 1?", targets=("door-1.md",), answers=("1234",))
    mined = mine(raw(tmp_path, [given]), AnswerJudge(), corpus=house())
    assert mined.pairs[0].answered_without_context
    assert mined.controls.answered_without_context == ("gift",)


def test_a_kernel_may_lie_outside_the_pool(tmp_path):
    """The pool has the target and a stranger; what is missing is found in the corpus."""
    case = replace(cases()[-1], targets=("door-5.md",))
    pool = PoolSettings(random_negatives=1, hard_negatives=0, neighbours=0)
    given = extract([case], house(), tmp_path / "raw.jsonl", settings=pool)
    assert "door-6.md" not in {one.fqn for one in given.pools[0].documents}
    (pair,) = mine(given, AnswerJudge(), corpus=house()).pairs
    assert pair.kernel == ("door-5.md", "door-6.md")
    assert {one.fqn: one.origins for one in pair.positive_ctxs}["door-6.md"] == ("kernel",)


def test_without_answers_everything_is_unsure(tmp_path):
    given = Case(id="open", question="What is the code of door 1?", targets=("door-1.md",))
    (pair,) = mine(raw(tmp_path, [given]), AnswerJudge(), corpus=house()).pairs
    assert not pair.positive_ctxs and not pair.negative_ctxs and pair.unsure_ctxs
    assert pair.kernel_status == "unresolved"


def test_kernels_need_the_corpus_and_can_be_left_out(tmp_path):
    with pytest.raises(ConfigError, match="searched for in the corpus"):
        mine(raw(tmp_path), AnswerJudge())
    mined = mine(raw(tmp_path), AnswerJudge(), settings=MiningSettings(kernels=False))
    assert all(pair.kernel_status is None for pair in mined.pairs) and "kernel_status" not in dump(mined)


def test_threads_and_their_order_do_not_show(tmp_path):
    given, corpus = raw(tmp_path), house()
    assert dump(mine(given, AnswerJudge(), corpus=corpus, limits=CallLimits(concurrency=16))) == dump(
        mine(given, AnswerJudge(), corpus=corpus, limits=CALM)
    )


def test_progress_is_told_by_step(tmp_path):
    heard = []
    mine(raw(tmp_path), AnswerJudge(), corpus=house(), listen=lambda *told: heard.append(told))
    assert list(dict.fromkeys(step for step, *_ in heard))[:3] == ["controls", "contexts", "kernels"]
    assert [told[1] for told in heard if told[0] == "kernels"] == [1, 2, 3, 4, 5]


class Grumpy:
    """Says NO to everything."""

    name = "grumpy"

    def judge(self, case, contexts, *, attempt=0):
        return Verdict(label="NO", judge=self.name)


def test_a_second_judge_gives_an_agreement(tmp_path):
    mined = mine(raw(tmp_path), AnswerJudge(), second=Grumpy(), corpus=house())
    assert mined.agreement.first == "answers" and mined.agreement.second == "grumpy"
    assert mined.agreement.kappa == 0 and 0 < mined.agreement.observed < 1


def test_a_judge_does_not_agree_with_itself(tmp_path):
    mined = mine(raw(tmp_path), AnswerJudge(), second=AnswerJudge(), corpus=house())
    assert mined.agreement is None


def test_an_ensemble_tells_how_far_its_members_agree(tmp_path):
    judge = EnsembleJudge([AnswerJudge(), Grumpy(), AnswerJudge()])
    mined = mine(raw(tmp_path), judge, corpus=house())
    assert mined.agreement.second == "grumpy" and by_id(mined)["door:1"].positive_ctxs[0].votes == (
        "YES",
        "NO",
        "YES",
    )


def test_an_estimate_asks_nobody(tmp_path):
    given = raw(tmp_path)
    steps = estimate_run(given, AnswerJudge(), second=Grumpy())
    contexts = sum(len(pool.contexts) for pool in given.pools)
    assert steps["controls"].tasks == 5 * 5 and steps["contexts"].tasks == contexts
    assert steps["second judge"].tasks == contexts and steps["kernels"].tasks > 0
    assert total(steps).tasks == sum(one.tasks for one in steps.values())
    assert "kernels" not in estimate_run(given, Grumpy(), settings=MiningSettings(kernels=False))


def single_doors(folder):
    """The scripted model knows of single doors only."""
    return extract(cases()[:-1], house(), folder / "raw.jsonl", settings=SMALL)


def test_a_model_at_an_endpoint_within_a_budget(tmp_path):
    given, corpus, path = single_doors(tmp_path), house(), tmp_path / "journal.jsonl"
    options = {"api_key": "sk-1", "patience": QUICK, "max_output_tokens": 256}
    with FaultyServer(seed=3, faults=0.2) as server, OpenAIJudge("doorman", server.url, **options) as judge:
        expected = total(estimate_run(given, judge)).usage
        assert expected.calls > 40
        with Journal.open(path) as journal, pytest.raises(BudgetError, match="budget is used up"):
            mine(given, judge, corpus=corpus, journal=journal, limits=CallLimits(budget_tokens=9000))
        with Journal.open(path, resume=True) as journal:
            assert 0 < journal.usage.tokens <= 9000
            known = total(estimate_run(given, judge, corpus=corpus, journal=journal))
            assert 0 < known.known < known.tasks and known.usage.calls < expected.calls
            mined = mine(given, judge, corpus=corpus, journal=journal, limits=CallLimits(budget_tokens=10**6))
        books = server.books["delivered"]
        with Journal.open(path, resume=True) as journal:
            assert total(estimate_run(given, judge, corpus=corpus, journal=journal)).usage.calls == 0
            again = mine(given, judge, corpus=corpus, journal=journal)
        assert server.books["delivered"] == books and dump(again) == dump(mined)
    assert all(pair.positive_ctxs for pair in mined.pairs)
    assert mined.judge.prompt_version == "evidence-3" and mined.controls.false_positive.errors == 0
    assert validate(write_dataset(mined, tmp_path / "out")) == []


SOLUTION = """\
from toy import Robot
from toy.tools import Wrench

robot = Robot("r2")
wrench = Wrench()
"""


def fix_case(check):
    return Case(
        id="fix:1",
        question="Which class makes a robot, and what does it hold?",
        targets=("toy.Robot",),
        answers=("Robot",),
        kind="fix_error",
        solution=SOLUTION,
        check=Check(command=("python", "test_it.py"), files={"test_it.py": check}),
    )


def test_checks_decide_where_there_are_any(tmp_path):
    corpus = PackageCorpus("toy", write_package(tmp_path), model=WordBag())
    check = "import ast\nnames = {n.name for m in ast.parse(open('solution.py').read()).body"
    check += (
        " if isinstance(m, ast.ImportFrom) for n in m.names}\nassert 'Robot' in names and 'Wrench' in names\n"
    )
    case = with_imports(fix_case(check), corpus)
    assert "toy.agents.robot.Robot" in case.targets and any("Wrench" in one for one in case.targets)
    given = extract([case], corpus, tmp_path / "raw.jsonl", settings=SMALL)
    judge = CheckJudge(AnswerJudge(), PartialSolution(corpus))
    assert judge.name == "check(answers)"
    (pair,) = mine(given, judge, corpus=corpus, second=AnswerJudge()).pairs
    assert set(pair.kernels) == {"expansion", "imports"}
    assert pair.kernels["imports"].status == "sufficient" and pair.kernel_status == "minimal"
    assert set(pair.kernel) == set(pair.kernels["imports"].contexts)
    assert all(one.part_of_kernel for one in pair.positive_ctxs)
    file = write_dataset(mine(given, judge, corpus=corpus), tmp_path / "out")
    assert [one for one in validate(file) if one.level == "error"] == []


class Counting:
    """A chat model that says YES and counts."""

    full_name, max_output_tokens = "counting", 10

    def __init__(self):
        self.asked = 0

    def complete(self, text, *, system="", attempt=0):
        self.asked += 1
        return ChatAnswer(text="YES", usage=Usage(calls=1))

    def expected(self, text, system=""):
        return Usage(calls=1)

    def close(self):
        pass


def test_a_screen_is_kept_before_the_check_runs(tmp_path):
    """The check is stopped by Ctrl-C: what the screen said is paid for and on disk."""
    case = fix_case("raise SystemExit(0)")

    def interrupted(case, contexts):
        raise KeyboardInterrupt

    chat = Counting()
    judge = CheckJudge(ChatJudge(chat, prompt_version="seed-1"), interrupted)
    document = Document("toy.Robot", "class Robot: robots")
    for _ in range(3):
        with Journal.open(tmp_path / "j.jsonl", resume=True) as journal, pytest.raises(KeyboardInterrupt):
            journaled(judge, journal).judge(case, [document])
    assert chat.asked == 1


class Closable(Grumpy):
    closed = False

    def close(self):
        self.closed = True


def test_every_member_of_a_judge_is_closed():
    judge = Closable()
    close_judge(CheckJudge(EnsembleJudge([Grumpy(), judge])))
    assert judge.closed


def test_the_seeds_recall_is_the_hit_rate(found):
    """Fraction of queries with at least one positive in the top k."""
    pair = found.pairs[0]
    positives = [one.fqn for one in pair.positive_ctxs]
    assert hit_rate_at_k(["x", positives[0]], positives, 2) == 1.0
    assert hit_rate_at_k(["x", positives[0]], positives, 1) == 0.0
