"""The kernels of each case by source: expansion, the imports of a solution, an agent."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from threading import Event, Lock

from dartboard.deadline import deadline
from dartboard.llm.chat import CompletionModel
from dartboard.llm.limits import limited_by
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.base import Corpus
from dartboard.mining.dataset import FoundKernel
from dartboard.mining.import_mining import imports_kernel
from dartboard.mining.judge_runner import JudgeSession
from dartboard.mining.judges.base import Judge
from dartboard.mining.kernels.agent_discovery import agent_kernel
from dartboard.mining.kernels.expansion import Kernel, find_kernel

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
) -> list[dict[str, FoundKernel]]:
    """The kernels of each case by source: expansion, imports where it has a solution, an agent if given.

    ``run_code`` lets a case's check run what the agent wrote.
    """
    cancelled, lock = Event(), Lock()
    done = 0

    def one(pool: ContextPool) -> dict[str, FoundKernel]:
        nonlocal done
        with limited_by(session.limiter), deadline(float("inf"), cancelled=cancelled):
            kernel = find_kernel(pool.case, pool, corpus, session.judge, most_rounds=most_rounds, votes=votes)
            found = {EXPANSION: _expanded(kernel)}
            if pool.case.solution is not None:
                found[IMPORTS] = _imported(pool.case, corpus, session.judge)
            if agent is not None:
                found[AGENT] = _by_agent(pool.case, corpus, session.judge, agent, run=run_code)
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


def _expanded(kernel: Kernel) -> FoundKernel:
    """The kernel with the evidence of the verdict that it rests on, or with what is still missing."""
    verdict, last = kernel.verdict, kernel.trail[-1] if kernel.trail else None
    missing = last.missing if last is not None else ""
    why = f"still missing: {missing}" if missing else "no sufficient set was found"
    return FoundKernel(
        contexts=kernel.contexts,
        status=kernel.status,
        alternatives=kernel.alternatives,
        judge=kernel.judge if verdict is None else verdict.judge,
        evidence="" if verdict is None else verdict.evidence,
        reason=why if verdict is None else verdict.reason,
        calls=kernel.calls,
    )


def _imported(case: Case, corpus: Corpus, judge: Judge) -> FoundKernel:
    """What the solution imports; sufficient where the judge says so, else nobody knows."""
    names = imports_kernel(case, corpus).contexts
    if not names:
        return FoundKernel(reason="the solution imports nothing of the corpus")
    return _confirmed(case, names, corpus, judge)


def _by_agent(case: Case, corpus: Corpus, judge: Judge, agent: CompletionModel, *, run: bool) -> FoundKernel:
    """What an agent used to solve the case; sufficient where its solution holds and the judge says so."""
    kernel = agent_kernel(case, corpus, agent, run=run)
    if not kernel.contexts:
        return FoundKernel(reason=f"the agent used nothing in {kernel.steps} steps", calls=kernel.steps)
    if kernel.right is False:
        return FoundKernel(contexts=kernel.contexts, reason=f"the agent: {kernel.fault}", calls=kernel.steps)
    found = _confirmed(case, kernel.contexts, corpus, judge)
    told = f"{found.reason} (the agent: {kernel.fault})" if kernel.fault else found.reason
    return replace(found, calls=found.calls + kernel.steps, reason=told)


def _confirmed(case: Case, names: Iterable[str], corpus: Corpus, judge: Judge) -> FoundKernel:
    documents = [one for name in sorted(names) if (one := corpus.get(name)) is not None]
    verdict = judge.judge(case, documents)
    sufficient = verdict.label == "YES"
    return FoundKernel(
        contexts=tuple(one.fqn for one in documents),
        status="sufficient" if sufficient else "unresolved",
        judge=verdict.judge,
        evidence=verdict.evidence if sufficient else "",
        reason=verdict.reason,
        calls=1,
    )
