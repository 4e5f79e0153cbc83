"""Many verdicts at once: parallel calls within limits, results in the order of the tasks.

Whatever ends a run early (the budget, an endpoint that is down, Ctrl-C), calls under way are waited for,
since they are paid, and every verdict that exists is handed out before the error is raised.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from itertools import islice
from threading import Event, Lock

from dartboard.deadline import deadline
from dartboard.errors import BudgetError, DeadlineError, EndpointError
from dartboard.llm.call_limits import CallLimiter, limited_by
from dartboard.llm.errors import NoAnswersError, RefusedError
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.base import Document
from dartboard.mining.dataset import Labels
from dartboard.mining.judges.base import Judge, Verdict, expected_usage, is_known

_AHEAD = 8


@dataclass(frozen=True, slots=True)
class Task:
    """A question about contexts; ``attempt`` > 0 asks it again, independently."""

    case: Case
    contexts: tuple[Document, ...]
    attempt: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What tasks will probably cost; ``known`` of them are in the journal already and cost nothing."""

    tasks: int
    known: int
    usage: Usage


Listener = Callable[[int, int | None], None]
"""Hears how many verdicts are there, and of how many where that is known."""
StepListener = Callable[[str, int, int | None, Usage], None]
"""Hears the step, how much of it is done, of how much, and what the run has cost so far."""


def estimate(judge: Judge, tasks: Iterable[Task]) -> Estimate:
    """Calls, tokens and money of tasks, before any of them is asked."""
    count = known = 0
    usage = Usage()
    for task in tasks:
        count += 1
        if is_known(judge, task.case, task.contexts, task.attempt):
            known += 1
        else:
            usage = usage + expected_usage(judge, task.case, task.contexts)
    return Estimate(tasks=count, known=known, usage=usage)


def judge_many(
    judge: Judge,
    tasks: Iterable[Task],
    limiter: CallLimiter | None = None,
    listen: Listener | None = None,
) -> Iterator[tuple[Task, Verdict]]:
    """Tasks with their verdicts, in order.

    A task whose endpoint fails for good is left out and the others go on; at the end an error says how many
    are missing. A refused key, a used-up budget, or too many failures or unreadable answers in a row
    (``give_up_after`` of the limits) end the run.

    Args:
        judge: is asked from several threads.
        tasks: read as far ahead as there are threads for.
        limiter: how many calls at once and a minute, and the budget, which several stages may share.
        listen: hears of every verdict.

    Raises:
        BudgetError: the budget is used up.
        EndpointError: calls failed; every verdict that exists was handed out before.
    """
    total = len(tasks) if isinstance(tasks, Sized) else None
    return _Run(judge, limiter or CallLimiter(), listen, total).results(iter(tasks))


class _Run:
    """One run of parallel calls."""

    def __init__(
        self, judge: Judge, limiter: CallLimiter, listen: Listener | None, total: int | None
    ) -> None:
        self._judge, self._limiter, self._listen, self._total = judge, limiter, listen, total
        self._calls_before = limiter.usage.calls
        self._concurrency = limiter.limits.concurrency
        self._lock = Lock()
        self._cancelled = Event()
        self._done = self._failed = self._in_a_row = 0
        self._first_failure: EndpointError | None = None
        self._ended_by: Exception | None = None

    def results(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, Verdict]]:
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="judge")
        waiting: deque[tuple[Task, Future[Verdict | None]]] = deque()
        try:
            while True:
                room = 0 if self._ended_by else _AHEAD * self._concurrency - len(waiting)
                for task in islice(tasks, max(0, room)):
                    waiting.append((task, pool.submit(copy_context().run, self._verdict, task)))
                if not waiting:
                    break
                task, future = waiting.popleft()
                verdict = future.result()
                if verdict is not None:
                    yield task, verdict
        finally:
            self._cancelled.set()
            pool.shutdown(wait=True, cancel_futures=True)
        self._raise()

    def _verdict(self, task: Task) -> Verdict | None:
        """The verdict, or None where there is none; what went wrong is kept."""
        if self._ended_by is not None or self._cancelled.is_set():
            return None
        try:
            with limited_by(self._limiter), deadline(float("inf"), cancelled=self._cancelled):
                verdict = self._judge.judge(task.case, task.contexts, attempt=task.attempt)
        except DeadlineError:
            if self._cancelled.is_set():
                return None
            raise
        except (BudgetError, RefusedError, NoAnswersError) as error:
            self._ended_by = self._ended_by or error
            return None
        except EndpointError as error:
            self._fail(error)
            return None
        self._succeed()
        return verdict

    def _succeed(self) -> None:
        with self._lock:
            self._done += 1
            self._in_a_row = 0
            if self._listen is not None:
                self._listen(self._done, self._total)

    def _fail(self, error: EndpointError) -> None:
        with self._lock:
            self._failed += 1
            self._in_a_row += 1
            self._first_failure = self._first_failure or error
            if self._in_a_row >= self._limiter.limits.most_in_a_row:
                self._ended_by = EndpointError(
                    f"{self._in_a_row} calls in a row failed, the last with: {error}. {self._kept()}"
                )

    def _raise(self) -> None:
        if isinstance(self._ended_by, BudgetError):
            calls = self._limiter.usage.calls - self._calls_before
            told = f"{self._done} verdicts of this step are there, for {calls} calls in this run"
            raise BudgetError(f"{self._ended_by} ({told})")
        if self._ended_by is not None:
            raise self._ended_by
        if self._first_failure is not None:
            raise EndpointError(
                f"{self._failed} calls failed, the first with: {self._first_failure}. {self._kept()}"
            )

    def _kept(self) -> str:
        return f"{self._done} verdicts are there; resume to ask for the missing ones"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSession:
    """Who judges, within which limits, and who is told: what the steps of a run share.

    Steps run in parallel within the limits of one limiter, and give their results in the order of the cases,
    whatever came back first: the data set never depends on timing.
    """

    judge: Judge
    limiter: CallLimiter
    listen: StepListener

    def label(self, step: str, wanted: Iterable[tuple[Case, Document]]) -> Labels:
        """A verdict on each context alone."""
        tasks = [Task(case, (document,)) for case, document in wanted]
        verdicts = judge_many(self.judge, tasks, self.limiter, self.listener(step))
        return {(task.case.id, task.contexts[0].fqn): verdict for task, verdict in verdicts}

    def listener(self, step: str) -> Listener:
        """A listener for one step."""
        return lambda done, total: self.listen(step, done, total, self.limiter.usage)


def pool_contexts(pools: Iterable[ContextPool]) -> list[tuple[Case, Document]]:
    """Every context of every case, in order."""
    return [(pool.case, document) for pool in pools for document in pool.documents]
