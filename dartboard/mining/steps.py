"""The steps of judging: label contexts, find kernels, put both together.

Steps run in parallel within the limits of one meter, and give their results in the order of the cases,
whatever came back first: the data set never depends on timing.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from threading import Event, Lock

from dartboard.deadline import deadline
from dartboard.llm.chat import CompletionModel
from dartboard.llm.meter import Meter, metered
from dartboard.llm.usage import Usage
from dartboard.mining.calls import Progress, Task, judge_many
from dartboard.mining.cases import Case
from dartboard.mining.documents import Corpus, Document
from dartboard.mining.judges.base import is_known
from dartboard.mining.kernels.agent_discovery import agent_kernel
from dartboard.mining.kernels.expansion import Kernel, find_kernel
from dartboard.mining.kernels.import_mining import imports_kernel
from dartboard.mining.kernels.voting import VOTES
from dartboard.mining.pairs import FoundKernel, JudgedContext, Pair, apart
from dartboard.mining.pool import ContextPool
from dartboard.mining.verdicts import Judge, Verdict

Listener = Callable[[str, int, int | None, Usage], None]
"""Hears the step, how much of it is done, of how much, and what the run has cost so far."""

Labels = dict[tuple[str, str], Verdict]
"""Verdicts by case and name of the context."""

EXPANSION, IMPORTS, AGENT = "expansion", "imports", "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Who judges, within which limits, and who is told."""

    judge: Judge
    meter: Meter
    listen: Listener

    def label(self, step: str, wanted: Iterable[tuple[Case, Document]]) -> Labels:
        """A verdict on each context alone."""
        tasks = [Task(case, (document,)) for case, document in wanted]
        verdicts = judge_many(self.judge, tasks, listen=self.hearing(step), meter=self.meter)
        return {(task.case.id, task.contexts[0].fqn): verdict for task, verdict in verdicts}

    def hearing(self, step: str) -> Callable[[Progress], None]:
        """A listener for one step."""
        return lambda progress: self.listen(step, progress.done, progress.total, self.meter.usage)


def pool_contexts(pools: Iterable[ContextPool]) -> list[tuple[Case, Document]]:
    """Every context of every case, in order."""
    return [(pool.case, document) for pool in pools for document in pool.documents]


def find_kernels(
    bench: Bench,
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
        with metered(bench.meter), deadline(float("inf"), cancelled=cancelled):
            kernel = find_kernel(pool.case, pool, corpus, bench.judge, most_rounds=most_rounds, votes=votes)
            found = {EXPANSION: _with_verdict(kernel, pool, corpus, bench.judge)}
            if pool.case.solution is not None:
                found[IMPORTS] = _imported(pool.case, corpus, bench.judge)
            if agent is not None:
                found[AGENT] = _by_agent(pool.case, corpus, bench.judge, agent, run=run_code)
        with lock:
            done += 1
            bench.listen("kernels", done, len(pools), bench.meter.usage)
        return found

    workers = ThreadPoolExecutor(bench.meter.limits.concurrency, thread_name_prefix="kernel")
    try:
        futures = [workers.submit(copy_context().run, one, pool) for pool in pools]
        return [future.result() for future in futures]
    finally:
        cancelled.set()
        workers.shutdown(wait=True, cancel_futures=True)


def members_of(found: dict[str, FoundKernel]) -> list[str]:
    """The names in the kernel that counts and in its alternatives."""
    kernel = found.get(source_of(found), FoundKernel())
    if kernel.status == "unresolved":
        return []
    return sorted({name for names in (kernel.contexts, *kernel.alternatives) for name in names})


def source_of(found: dict[str, FoundKernel]) -> str:
    """The source that counts: the first that found a sufficient set, by rising doubt."""
    resolved = [source for source in found if found[source].status != "unresolved"]
    return next(iter(resolved or found), "")


def make_pair(
    pool: ContextPool, labels: Labels, found: dict[str, FoundKernel], corpus: Corpus | None, *, marked: bool
) -> Pair:
    """Everything that is known of one case."""
    members = set(members_of(found))
    documents = {one.fqn: one for one in pool.documents}
    for name in members - documents.keys():
        document = corpus.get(name) if corpus is not None else None
        if document is not None:
            documents[name] = document
    origins = {one.document.fqn: one.origins for one in pool.contexts}
    judged = [
        _judged(document, labels[pool.case.id, name], origins.get(name, ()), part=name in members)
        for name, document in documents.items()
    ]
    positives, negatives, unsure = apart(judged)
    source = source_of(found)
    return Pair(
        id=pool.case.id,
        query=pool.case.question,
        kind=pool.case.kind,
        answers=pool.case.answers,
        facets=pool.case.facets,
        answered_without_context=marked,
        positives=positives,
        negatives=negatives,
        unsure=unsure,
        kernels={name: _with_singles(kernel, positives, name == source) for name, kernel in found.items()},
        source=source,
    )


def _judged(document: Document, verdict: Verdict, origins: tuple[str, ...], *, part: bool) -> JudgedContext:
    return JudgedContext(
        fqn=document.fqn,
        text=document.text,
        verdict=verdict.label,
        evidence=verdict.evidence if verdict.label == "YES" else "",
        reason=verdict.reason,
        judge=verdict.judge,
        prompt_version=verdict.prompt_version,
        votes=verdict.votes,
        origins=origins or ("kernel",),
        part_of_kernel=part and verdict.label != "YES",
    )


def _with_singles(kernel: FoundKernel, positives: Sequence[JudgedContext], counts: bool) -> FoundKernel:
    """A context that answers alone is a kernel by itself, so it is an alternative to another one, and a
    larger set that holds it is none."""
    if not counts or kernel.status == "unresolved":
        return kernel
    alone = {(one.fqn,): one.fqn for one in positives if one.verdict == "YES"}
    minimal = [one for one in kernel.alternatives if len(one) == 1 or not set(one) & set(alone.values())]
    others = dict.fromkeys([*minimal, *alone])
    return replace(kernel, alternatives=tuple(one for one in others if one != kernel.contexts))


def _with_verdict(kernel: Kernel, pool: ContextPool, corpus: Corpus, judge: Judge) -> FoundKernel:
    """The kernel with the evidence of the verdict that it rests on, which is in the journal by now."""
    known = {one.fqn: one for one in pool.documents}
    documents = [known.get(name) or corpus.get(name) for name in kernel.contexts]
    shown = [one for one in documents if one is not None]
    verdict = _first_yes(pool.case, shown, judge) if shown else None
    return FoundKernel(
        contexts=kernel.contexts,
        status=kernel.status,
        alternatives=kernel.alternatives,
        judge=kernel.judge if verdict is None else verdict.judge,
        evidence="" if verdict is None else verdict.evidence,
        reason=_why(kernel) if verdict is None else verdict.reason,
        calls=kernel.calls,
    )


def _first_yes(case: Case, documents: Sequence[Document], judge: Judge) -> Verdict | None:
    for attempt in range(VOTES):
        if attempt and not is_known(judge, case, documents, attempt):
            return None
        verdict = judge.judge(case, documents, attempt=attempt)
        if verdict.label == "YES":
            return verdict
    return None


def _why(kernel: Kernel) -> str:
    last = kernel.trail[-1] if kernel.trail else None
    return (
        f"still missing: {last.missing}"
        if last is not None and last.missing
        else "no sufficient set was found"
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
