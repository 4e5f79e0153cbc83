"""A whole run: controls → a verdict on every context → kernels → the data set.

Every answer of a model goes through the journal, where there is one. So a run that is killed anywhere goes on
from there, asks for nothing twice but what was under way, and ends with the same bytes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from dartboard.datasets.mined import (
    Agreement,
    Controls,
    CorpusName,
    JudgedContext,
    JudgeName,
    Kernel,
    Mined,
    Pair,
)
from dartboard.errors import ConfigError, EndpointError
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.chat import ChatAnswer, CompletionModel
from dartboard.llm.errors import NoAnswersError
from dartboard.llm.journal import Journal, JournaledChat
from dartboard.llm.parallel import run
from dartboard.llm.usage import Usage
from dartboard.mining.agreement import agree
from dartboard.mining.candidates import RawCandidates
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool
from dartboard.mining.controls import Control, controls_of, count_controls, failures
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.import_mining import imports_kernel
from dartboard.mining.judges.base import Judge, Verdict, expected_usage, reasons_of, version_of
from dartboard.mining.judges.ensemble import journaled, members_in
from dartboard.mining.kernels.agent_discovery import agent_kernel
from dartboard.mining.kernels.expansion import ROUNDS, FoundKernel, find_kernel

CONTROLS, CONTEXTS, SECOND, KERNELS = "controls", "contexts", "second judge", "kernels"
EXPANSION, IMPORTS, AGENT = "expansion", "imports", "agent"

Labels = dict[tuple[str, str], Verdict]
"""Verdicts by case and name of the context."""
StepListener = Callable[[str, int, int, Usage], None]
"""Hears the step, how much of it is done, of how much, and what the run has cost so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MiningSettings:
    """What a run does beside judging contexts.

    Args:
        kernels: whether kernels are searched for.
        most_rounds: the most expansions of a kernel.
        votes: the most votes on a set; None: 1 for judges without a prompt, 7 for others.
        seed: of the controls and of the intervals.
    """

    kernels: bool = True
    most_rounds: int = ROUNDS
    votes: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What questions will probably take; ``known`` of them are in the journal already and cost nothing."""

    tasks: int
    known: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class _Kernels:
    """The kernels of a case by source, and what was found out beside."""

    by_source: dict[str, Kernel] = field(default_factory=dict)
    labels: Mapping[str, Verdict] = field(default_factory=dict)
    insufficient_targets: bool = False

    @property
    def source(self) -> str:
        """The source that counts: the first that found a sufficient set, by rising doubt."""
        resolved = [one for one, kernel in self.by_source.items() if kernel.status != "unresolved"]
        return next(iter(resolved or self.by_source), "")


def mine(
    raw: RawCandidates,
    judge: Judge,
    *,
    corpus: Corpus | None = None,
    second: Judge | None = None,
    agent: CompletionModel | None = None,
    journal: Journal | None = None,
    limits: CallLimits | None = None,
    settings: MiningSettings | None = None,
    listen: StepListener = lambda *_: None,
    run_code: bool = False,
) -> Mined:
    """Judge raw candidates and find their kernels.

    Args:
        raw: the cases with their contexts.
        judge: decides on every context and every set of contexts.
        corpus: needed for kernels.
        second: asked about every context, too, for an agreement.
        agent: a model that solves every case, for its kernel.
        journal: where every answer is kept, and taken from when a run goes on.
        limits: calls at once and a minute, and the budget.
        settings: what is done beside judging contexts.
        listen: hears of progress.
        run_code: whether the checks of cases may run what the agent wrote.

    Returns:
        The data set, not written yet.

    Raises:
        ConfigError: kernels are wanted and no corpus is given.
        NoAnswersError: the judge gives no readable answers.
        BudgetError: the budget is used up; what was paid for is in the journal.
    """
    chosen = settings or MiningSettings()
    if chosen.kernels and corpus is None:
        raise ConfigError(
            "kernels are searched for in the corpus: give it, or leave kernels out", field="corpus"
        )
    limiter = CallLimiter(limits, spent=journal.usage if journal is not None else None)
    asked, agent = journaled(judge, journal), _journaled_agent(agent, journal)

    def told(step: str) -> Callable[[int, int], None]:
        return lambda done, total: listen(step, done, total, limiter.usage)

    def label(who: Judge, step: str) -> Labels:
        pairs = [(pool.case, document) for pool in raw.pools for document in pool.documents]
        verdicts = run(lambda pair: who.judge(pair[0], (pair[1],)), pairs, limiter, told(step))
        return {(case.id, one.fqn): verdict for (case, one), verdict in zip(pairs, verdicts, strict=True)}

    def kernels_of(pool: ContextPool) -> _Kernels:
        known = {one.fqn: labels[pool.case.id, one.fqn] for one in pool.documents}
        found = _expanded(pool, known, corpus, asked, chosen)
        kernels = {EXPANSION: found.kernel}
        if pool.case.solution is not None and corpus is not None:
            kernels[IMPORTS] = _imported(pool.case, corpus, asked)
        if agent is not None and corpus is not None:
            solved = agent_kernel(pool.case, corpus, agent, judge=asked, run=run_code)
            kernels[AGENT] = solved.kernel
        extra = _labelled_members(pool, kernels, found.labels, corpus, asked)
        return _Kernels(kernels, {**found.labels, **extra}, found.insufficient_targets)

    controls = controls_of(raw.pools, seed=chosen.seed)
    verdicts = run(lambda one: asked.judge(one.case, one.contexts), controls, limiter, told(CONTROLS))
    answered = list(zip(controls, verdicts, strict=True))
    _check_answered(asked.name, answered)
    labels = label(asked, CONTEXTS)
    opinions = {} if second is None else label(journaled(second, journal), SECOND)
    agreement = _agreement(judge, second, labels, opinions, chosen.seed)
    found = [_Kernels()] * len(raw.pools)
    if chosen.kernels:
        found = run(kernels_of, raw.pools, limiter, told(KERNELS))
    insufficient = frozenset(
        pool.case.id for pool, one in zip(raw.pools, found, strict=True) if one.insufficient_targets
    )
    counted = count_controls(judge.name, chosen.seed, answered, insufficient)
    pairs = [_pair(pool, labels, one, corpus, counted) for pool, one in zip(raw.pools, found, strict=True)]
    return Mined(
        format="dartboard retrieval data set",
        version=2,
        verified=not failures(counted),
        corpus=CorpusName(name=raw.head.corpus, fingerprint=raw.head.fingerprint),
        judge=JudgeName(name=judge.name, prompt_version=version_of(judge)),
        controls=counted,
        agreement=agreement,
        settings={"pools": raw.head.settings, "judging": asdict(chosen)},
        pairs=tuple(pairs),
    )


def estimate_run(
    raw: RawCandidates,
    judge: Judge,
    *,
    corpus: Corpus | None = None,
    second: Judge | None = None,
    journal: Journal | None = None,
    settings: MiningSettings | None = None,
) -> dict[str, Estimate]:
    """Calls and tokens by step, before the first call.

    Kernels are a guess from the targets; those that the journal holds all answers for cost nothing.
    """
    chosen = settings or MiningSettings()
    first = journaled(judge, journal)
    contexts = [(pool.case, (one,), 0) for pool in raw.pools for one in pool.documents]
    controls = [(one.case, one.contexts, 0) for one in controls_of(raw.pools, seed=chosen.seed)]
    steps = {CONTROLS: _estimate(first, controls), CONTEXTS: _estimate(first, contexts)}
    if second is not None:
        steps[SECOND] = _estimate(journaled(second, journal), contexts)
    if chosen.kernels:
        known = _Kept(journal) if journal is not None else None
        steps[KERNELS] = _estimate(
            judge,
            [
                task
                for pool in raw.pools
                if known is None or not known.holds(pool, judge, corpus, chosen)
                for task in _kernel_tasks(pool, judge, chosen)
            ],
        )
    return steps


def total(steps: Mapping[str, Estimate]) -> Estimate:
    """All steps together."""
    return Estimate(
        tasks=sum(one.tasks for one in steps.values()),
        known=sum(one.known for one in steps.values()),
        usage=sum((one.usage for one in steps.values()), Usage()),
    )


def unsure_reasons(mined: Mined) -> dict[str, int]:
    """Why contexts are UNSURE, with their numbers, the commonest first."""
    return reasons_of((one.reason, one.answered) for pair in mined.pairs for one in pair.unsure_ctxs)


def unanswered(mined: Mined) -> int:
    """How many contexts are UNSURE because no readable answer came."""
    return sum(not one.answered for pair in mined.pairs for one in pair.unsure_ctxs)


def _journaled_agent(agent: CompletionModel | None, journal: Journal | None) -> CompletionModel | None:
    return agent if agent is None or journal is None else JournaledChat(agent, journal)


def _expanded(
    pool: ContextPool,
    labels: Mapping[str, Verdict],
    corpus: Corpus | None,
    judge: Judge,
    chosen: MiningSettings,
) -> FoundKernel:
    return find_kernel(
        pool.case,
        pool,
        corpus,
        judge,
        labels=labels,
        most_rounds=chosen.most_rounds,
        votes=chosen.votes,
    )


def _imported(case: Case, corpus: Corpus, judge: Judge) -> Kernel:
    """What the solution imports; sufficient where the judge says so, else nobody knows."""
    names = imports_kernel(case, corpus)
    documents = [one for name in names if (one := corpus.get(name)) is not None]
    if not documents:
        return Kernel(reason="the solution imports nothing of the corpus")
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


def _labelled_members(
    pool: ContextPool,
    kernels: dict[str, Kernel],
    labels: Mapping[str, Verdict],
    corpus: Corpus | None,
    judge: Judge,
) -> dict[str, Verdict]:
    """A label for each member of the kernel that counts which nobody has judged alone."""
    counts = kernels[_Kernels(kernels).source]
    return {
        name: judge.judge(pool.case, (document,))
        for name in counts.contexts
        if counts.status != "unresolved" and name not in labels and corpus is not None
        if (document := corpus.get(name)) is not None
    }


def _pair(
    pool: ContextPool, labels: Labels, found: _Kernels, corpus: Corpus | None, controls: Controls
) -> Pair:
    """Everything that is known of one case."""
    case, source = pool.case, found.source
    kernel = found.by_source.get(source, Kernel())
    resolved = kernel.status != "unresolved"
    members = set(kernel.contexts) if resolved else set()
    documents = {one.fqn: one for one in pool.documents}
    for name in members - documents.keys():
        if corpus is not None and (document := corpus.get(name)) is not None:
            documents[name] = document
    origins = {one.document.fqn: one.origins for one in pool.contexts}
    judged = [
        _judged(
            documents[name],
            found.labels[name] if name in found.labels else labels[case.id, name],
            origins.get(name, ("kernel",)),
            part=name in members,
        )
        for name in sorted(documents)
    ]
    positives = tuple(one for one in judged if one.verdict == "YES" or one.part_of_kernel)
    # A context that answers alone is a kernel by itself, so it is an alternative to another one.
    alone = [(one.fqn,) for one in positives if one.verdict == "YES"] if resolved else []
    given = kernel.alternatives if resolved else ()
    others = tuple(one for one in dict.fromkeys([*given, *alone]) if one != kernel.contexts)
    rest = [one for one in judged if one not in positives]
    return Pair(
        id=case.id,
        query=case.question,
        kind=case.kind,
        answers=case.answers,
        facets=case.facets,
        answered_without_context=case.id in controls.answered_without_context,
        positive_ctxs=positives,
        negative_ctxs=tuple(one for one in rest if one.verdict == "NO"),
        unsure_ctxs=tuple(one for one in rest if one.verdict == "UNSURE"),
        kernel=kernel.contexts if resolved else (),
        kernel_status=kernel.status if found.by_source else None,
        kernel_source=source,
        alternatives=others,
        kernels={name: replace(one, alternatives=()) for name, one in found.by_source.items()},
    )


def _judged(document: Document, verdict: Verdict, origins: tuple[str, ...], *, part: bool) -> JudgedContext:
    return JudgedContext(
        fqn=document.fqn,
        text=document.text,
        verdict=verdict.label,
        answered=verdict.answered,
        evidence=verdict.evidence if verdict.label == "YES" else "",
        reason=verdict.reason,
        judge=verdict.judge,
        prompt_version=verdict.prompt_version,
        votes=verdict.votes,
        origins=origins,
        part_of_kernel=part and verdict.label != "YES",
    )


def _check_answered(name: str, answered: Sequence[tuple[Control, Verdict]]) -> None:
    """A judge that answers none of its controls answers nothing else either."""
    if answered and not any(verdict.answered for _, verdict in answered):
        why = answered[0][1].reason
        raise NoAnswersError(
            f"{name} gave no readable answer to any of its {len(answered)} controls: {why}. Correct the "
            "model's name, the key or the limit of output and resume: these calls are asked again"
        )


def _agreement(
    judge: Judge, second: Judge | None, labels: Labels, opinions: Labels, seed: int
) -> Agreement | None:
    """How far two judges say the same; of an ensemble alone, its first two members."""
    if second is not None:
        # A judge that is asked twice agrees with itself, which says nothing.
        shared = [key for key in labels if labels[key].judge != opinions[key].judge]
        names = (judge.name, second.name)
        ones, others = ([some[key].label for key in shared] for some in (labels, opinions))
    else:
        members = [one.name for one in getattr(judge, "judges", ())]
        if len(members) < 2:
            return None
        shared = [key for key in labels if len(labels[key].votes) == len(members)]
        names = (members[0], members[1])
        ones, others = ([labels[key].votes[at] for key in shared] for at in (0, 1))
    if not shared:
        return None
    agreed = agree(ones, others, names=names, groups=[case for case, _ in shared], seed=seed)
    if second is None:
        return agreed
    return replace(agreed, shared=tuple(sorted(members_in(judge) & members_in(second))))


def _estimate(judge: Judge, tasks: Sequence[tuple[Case, tuple[Document, ...], int]]) -> Estimate:
    usages = [expected_usage(judge, *task) for task in tasks]
    known = sum(not usage.calls for usage in usages) if version_of(judge) else 0
    return Estimate(tasks=len(tasks), known=known, usage=sum(usages, Usage()))


def _kernel_tasks(
    pool: ContextPool, judge: Judge, chosen: MiningSettings
) -> list[tuple[Case, tuple[Document, ...], int]]:
    """As many questions as a kernel takes whose members are the targets, each with all of them."""
    votes = min(2, chosen.votes or 2) if version_of(judge) else 1
    targets = tuple(one for one in pool.documents if one.fqn in pool.targets)
    calls = votes * (1 + 2 * len(targets))
    return [(pool.case, targets, attempt) for attempt in range(calls)]


class _NotKeptError(EndpointError):
    """The journal has no answer to this."""


class _Kept:
    """A journal that is read and never added to: is a kernel finished with what it holds?"""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def holds(self, pool: ContextPool, judge: Judge, corpus: Corpus | None, chosen: MiningSettings) -> bool:
        """Whether the labels and the kernel of a case need no further answer."""
        reading = journaled(judge, _ReadOnly(self._journal))
        try:
            labels = {one.fqn: reading.judge(pool.case, (one,)) for one in pool.documents}
            _expanded(pool, labels, corpus, reading, chosen)
        except _NotKeptError:
            return False
        return True


class _ReadOnly(Journal):
    """Answers of a journal; what it has not is not asked for."""

    def __init__(self, journal: Journal) -> None:
        self._kept = journal

    def get(self, key: str) -> ChatAnswer | None:
        """The answer, or an error."""
        found = self._kept.get(key)
        if found is None:
            raise _NotKeptError("not in the journal")
        return found
