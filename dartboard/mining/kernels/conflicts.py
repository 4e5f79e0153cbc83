"""Contexts and targets that contradict a kernel are asked about again.

The label of a context is one vote, and a kernel rests on several. Where one member of a larger kernel was
said to answer alone, one of the two is wrong: the kernel is not minimal, or the label is an error. The member
is then voted on as kernels are. If it answers alone, it is the kernel; if not, its label is what the votes
say, and it stays a part.

A case's targets are believed to answer its question. A kernel with members beyond them says that they may
not; where its minimality does not decide that, they are voted on, too.
"""

from collections.abc import Sequence
from dataclasses import replace
from threading import Event

from dartboard.deadline import deadline
from dartboard.llm.call_limits import limited_by
from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.base import Corpus
from dartboard.mining.dataset import Kernel, Labels, source_of
from dartboard.mining.judge_runner import JudgeSession
from dartboard.mining.judges.base import Verdict
from dartboard.mining.kernels.voting import Panel, votes_for

_STAGE = "alone"
_TARGETS = "targets"


def resolve_conflicts(
    session: JudgeSession,
    pools: Sequence[ContextPool],
    corpus: Corpus,
    labels: Labels,
    found: Sequence[dict[str, Kernel]],
    *,
    votes: int | None,
) -> tuple[Labels, list[dict[str, Kernel]]]:
    """Labels and kernels without contradictions between a kernel that counts and its members."""
    most = votes_for(session.judge, votes)
    resolved, kernels = dict(labels), [dict(one) for one in found]
    with limited_by(session.limiter), deadline(float("inf"), cancelled=Event()):
        for pool, by_source in zip(pools, kernels, strict=True):
            source = source_of(by_source)
            if source not in by_source or by_source[source].status == "unresolved":
                continue
            by_source[source] = _resolved(session, pool, corpus, resolved, by_source[source], most)
    return resolved, kernels


def insufficient_targets(
    session: JudgeSession,
    pools: Sequence[ContextPool],
    found: Sequence[dict[str, Kernel]],
    *,
    votes: int | None,
) -> frozenset[str]:
    """The ids of cases whose targets do not answer them, by the kernel that counts or by a vote.

    A case without a sufficient set is none of them: a judge that says NO to everything finds no kernel.
    """
    most = votes_for(session.judge, votes)
    with limited_by(session.limiter), deadline(float("inf"), cancelled=Event()):
        return frozenset(
            pool.case.id
            for pool, by_source in zip(pools, found, strict=True)
            if _is_insufficient(session, pool, by_source.get(source_of(by_source), Kernel()), most)
        )


def _is_insufficient(session: JudgeSession, pool: ContextPool, kernel: Kernel, votes: int) -> bool:
    targets = set(pool.targets)
    sufficient = (kernel.contexts, *kernel.alternatives)
    if not targets or kernel.status == "unresolved" or any(targets.issuperset(one) for one in sufficient):
        return False
    # A minimal kernel no longer answers without any one member, so neither does a part of it.
    if kernel.status == "minimal" and targets.issubset(kernel.contexts):
        return True
    documents = [one for one in pool.documents if one.fqn in targets]
    return Panel(pool.case, session.judge, votes=votes).decide(_TARGETS, documents) == "NO"


def _resolved(
    session: JudgeSession, pool: ContextPool, corpus: Corpus, labels: Labels, kernel: Kernel, votes: int
) -> Kernel:
    """The kernel, or its one member that answers alone; labels are changed in their place."""
    case, documents = pool.case, {one.fqn: one for one in pool.documents}
    alone: Kernel | None = None
    calls = kernel.calls
    for name in kernel.contexts if len(kernel.contexts) > 1 else ():
        document = documents.get(name) or corpus.get(name)
        if document is None or labels[case.id, name].label != "YES":
            continue
        panel = Panel(case, session.judge, votes=votes)
        panel.decide(_STAGE, [document])
        labels[case.id, name] = verdict = panel.verdict([document])
        calls += panel.calls
        if verdict.label == "YES" and alone is None:
            alone = _single(kernel, name, verdict)
    return replace(alone or kernel, calls=calls)


def _single(kernel: Kernel, name: str, verdict: Verdict) -> Kernel:
    """The member as the kernel; alternatives that hold it are no longer minimal."""
    return replace(
        kernel,
        contexts=(name,),
        status="minimal",
        alternatives=tuple(one for one in kernel.alternatives if name not in one),
        judge=verdict.judge,
        evidence=verdict.evidence,
        reason=verdict.reason,
    )
