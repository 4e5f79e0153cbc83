"""The kernels of each case by source: expansion, the imports of a solution, an agent."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from threading import Event, Lock

from dartboard.deadline import deadline
from dartboard.llm.call_limits import limited_by
from dartboard.llm.chat import CompletionModel
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.base import Corpus
from dartboard.mining.dataset import Kernel
from dartboard.mining.import_mining import imports_kernel
from dartboard.mining.judge_runner import JudgeSession
from dartboard.mining.judges.base import Judge
from dartboard.mining.kernels.agent_discovery import agent_kernel
from dartboard.mining.kernels.expansion import find_kernel

EXPANSION, IMPORTS, AGENT = "expansion", "imports", "agent"


def find_kernels(
    session: JudgeSession,
    pools: Sequence[ContextPool],
    corpus: Corpus,
    *,
    most_rounds: int,
    votes: int | None,
    agent: CompletionModel | None = None,
    run_code: bool = False,
) -> list[dict[str, Kernel]]:
    """The kernels of each case by source: expansion, imports where it has a solution, an agent if given.

    ``run_code`` lets a case's check run what the agent wrote.
    """
    cancelled, lock = Event(), Lock()
    done = 0

    def one(pool: ContextPool) -> dict[str, Kernel]:
        nonlocal done
        with limited_by(session.limiter), deadline(float("inf"), cancelled=cancelled):
            judge = session.judge
            found: dict[str, Kernel] = {
                EXPANSION: find_kernel(pool.case, pool, corpus, judge, most_rounds=most_rounds, votes=votes)
            }
            if pool.case.solution is not None:
                found[IMPORTS] = _imported(pool.case, corpus, judge)
            if agent is not None:
                found[AGENT] = agent_kernel(pool.case, corpus, agent, judge=judge, run=run_code)
        with lock:
            done += 1
            session.listen("kernels", done, len(pools), session.limiter.usage)
        return found

    workers = ThreadPoolExecutor(session.limiter.limits.concurrency, thread_name_prefix="kernel")
    try:
        futures = [workers.submit(copy_context().run, one, pool) for pool in pools]
        return [future.result() for future in futures]
    finally:
        cancelled.set()
        workers.shutdown(wait=True, cancel_futures=True)


def _imported(case: Case, corpus: Corpus, judge: Judge) -> Kernel:
    """What the solution imports; sufficient where the judge says so, else nobody knows."""
    names = imports_kernel(case, corpus).contexts
    if not names:
        return Kernel(reason="the solution imports nothing of the corpus")
    documents = [one for name in names if (one := corpus.get(name)) is not None]
    verdict = judge.judge(case, documents)
    sufficient = verdict.label == "YES"
    return Kernel(
        contexts=tuple(one.fqn for one in documents),
        status="sufficient" if sufficient else "unresolved",
        judge=verdict.judge,
        evidence=verdict.evidence if sufficient else "",
        reason=verdict.reason,
        calls=1,
    )
