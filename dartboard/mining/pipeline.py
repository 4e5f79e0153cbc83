"""A whole run: controls → a verdict on every context → kernels → the data set.

Every verdict goes through the journal, where there is one. So a run that is killed anywhere goes on from
there, asks for nothing twice but what was under way, and ends with the same bytes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from dartboard.errors import ConfigError
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.chat import CompletionModel
from dartboard.llm.circuit_breaker import no_answers
from dartboard.llm.errors import NoAnswersError
from dartboard.llm.usage import Usage
from dartboard.mining.agreement import Agreement, agree, agreements
from dartboard.mining.cases import Case
from dartboard.mining.controls import Controls, control_tasks, run_controls
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.dataset import Kernel, Labels, Mined, make_pair, members_of
from dartboard.mining.journaled_judge import JournaledChat, journaled
from dartboard.mining.judge_runner import Estimate, JudgeSession, StepListener, Task, estimate, pool_contexts
from dartboard.mining.judges.base import Judge, reasons_of, version_of
from dartboard.mining.judges.composite_judges import EnsembleJudge, PerCaseJudge, members_in
from dartboard.mining.kernels.conflicts import insufficient_targets, resolve_conflicts
from dartboard.mining.kernels.expansion import ROUNDS
from dartboard.mining.kernels.sources import find_kernels
from dartboard.mining.raw_candidates import CORPUS, SEEN_FROM, RawCandidates
from dartboard.mining.verdict_journal import Journal

CONTROLS, CONTEXTS, SECOND, MEMBERS = "controls", "contexts", "second judge", "members of kernels"


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
    listen: StepListener | None = None,
    run_code: bool = False,
) -> Mined:
    """Judge raw candidates and find their kernels.

    Args:
        raw: the cases with their contexts.
        judge: decides on every context and every set of contexts.
        corpus: needed for kernels.
        second: asked about every context, too, for an agreement.
        agent: a model that solves every case, for its kernel.
        journal: where every verdict is kept, and taken from when a run goes on.
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
        raise ConfigError("kernels are searched for in the corpus: give it, or leave kernels out")
    limiter = CallLimiter(limits, spent=journal.usage if journal is not None else None)
    session = JudgeSession(
        judge=journaled(judge, journal), limiter=limiter, listen=listen or (lambda *_: None)
    )
    try:
        controls = run_controls(
            raw.pools, session.judge, chosen.seed, limiter=limiter, listen=session.listener(CONTROLS)
        )
        _check_answered(controls)
        labels = session.label(CONTEXTS, pool_contexts(raw.pools))
        agreed = _agreement(judge, labels, chosen.seed)
        if second is not None:
            other = replace(session, judge=journaled(second, journal))
            opinions = other.label(SECOND, pool_contexts(raw.pools))
            agreed = _agree(labels, opinions, (judge.name, second.name), chosen.seed)
        found: list[dict[str, Kernel]] = [{} for _ in raw.pools]
        if chosen.kernels and corpus is not None:
            found = find_kernels(
                session,
                raw.pools,
                corpus,
                most_rounds=chosen.most_rounds,
                votes=chosen.votes,
                agent=agent if agent is None or journal is None else JournaledChat(agent, journal),
                run_code=run_code,
            )
            labels |= session.label(MEMBERS, _unlabelled(raw, found, corpus, labels))
            labels, found = resolve_conflicts(session, raw.pools, corpus, labels, found, votes=chosen.votes)
            insufficient = insufficient_targets(session, raw.pools, found, votes=chosen.votes)
            controls = replace(controls, insufficient_targets=insufficient)
    except NoAnswersError:
        if journal is not None:
            journal.withdraw_unanswered()
        raise
    unaided = controls.answered_without_context
    pairs = [
        make_pair(pool, labels, kernels, corpus, marked=pool.case.id in unaided)
        for pool, kernels in zip(raw.pools, found, strict=True)
    ]
    return Mined(
        pairs=tuple(pairs),
        corpus=raw.corpus_name,
        fingerprint=raw.fingerprint,
        judge=judge.name,
        prompt_version=version_of(judge),
        controls=controls.to_plain(),
        agreement=_plain_agreed(agreed, judge, second) if agreed else None,
        settings=_plain_settings(raw, chosen),
        unsure_reasons=reasons_of([*controls.unsure, *labels.values()]),
        unanswered=sum(not verdict.answered for verdict in [*controls.unsure, *labels.values()]),
    )


def estimate_run(
    raw: RawCandidates,
    judge: Judge,
    *,
    second: Judge | None = None,
    journal: Journal | None = None,
    settings: MiningSettings | None = None,
) -> dict[str, Estimate]:
    """Calls, tokens and money by step, before the first call; kernels are a guess from the targets."""
    chosen = settings or MiningSettings()
    first = journaled(judge, journal)
    contexts = [Task(case, (document,)) for case, document in pool_contexts(raw.pools)]
    controls = control_tasks(raw.pools, seed=chosen.seed)
    steps = {
        CONTROLS: estimate(first, [control.task for control in controls]),
        CONTEXTS: estimate(first, contexts),
    }
    if second is not None:
        steps[SECOND] = estimate(journaled(second, journal), contexts)
    if chosen.kernels:
        steps["kernels"] = estimate(judge, _kernel_tasks(raw, judge, chosen))
    return steps


def total(steps: Mapping[str, Estimate]) -> Estimate:
    """All steps together."""
    return Estimate(
        tasks=sum(one.tasks for one in steps.values()),
        known=sum(one.known for one in steps.values()),
        usage=sum((one.usage for one in steps.values()), Usage()),
    )


def _plain_agreed(agreed: list[Agreement], judge: Judge, second: Judge | None) -> dict[str, Any]:
    """The agreement, with the judges that both are made of: where there are any, they cannot but agree."""
    shared = sorted(members_in(judge) & members_in(second)) if second is not None else []
    plain = agreed[0].to_plain()
    names = {name: plain.pop(name) for name in ("first", "second")}
    return {**names, **({"shared": shared} if shared else {}), **plain}


def _plain_settings(raw: RawCandidates, chosen: MiningSettings) -> dict[str, Any]:
    pools = {name: value for name, value in raw.settings.items() if name not in (CORPUS, SEEN_FROM)}
    return {"pools": pools, "judging": asdict(chosen)}


def _check_answered(controls: Controls) -> None:
    """A judge that answers none of its controls answers nothing else either."""
    asked = len(controls.answered)
    if asked and sum(not verdict.answered for verdict in controls.unsure) == asked:
        why = next(iter(reasons_of(controls.unsure)))
        raise NoAnswersError(no_answers(controls.judge, f"any of its {asked} controls", why))


def _agreement(judge: Judge, labels: Labels, seed: int) -> list[Agreement]:
    """Of an ensemble, how far its first two members agree on the contexts."""
    ensemble = judge.otherwise if isinstance(judge, PerCaseJudge) else judge
    if not isinstance(ensemble, EnsembleJudge):
        return []
    names = [member.name for member in ensemble.judges]
    voted = [(case, verdict) for (case, _), verdict in labels.items() if len(verdict.votes) == len(names)]
    groups = [case for case, _ in voted]
    return agreements([verdict for _, verdict in voted], names, groups=groups, seed=seed) if voted else []


def _agree(labels: Labels, opinions: Labels, names: tuple[str, str], seed: int) -> list[Agreement]:
    # A judge that is asked twice agrees with itself, which says nothing.
    shared = [key for key in labels if key in opinions and labels[key].judge != opinions[key].judge]
    if not shared:
        return []
    ones, others = [labels[key].label for key in shared], [opinions[key].label for key in shared]
    return [agree(ones, others, names=names, groups=[case for case, _ in shared], seed=seed)]


def _unlabelled(
    raw: RawCandidates, found: list[dict[str, Kernel]], corpus: Corpus, labels: Labels
) -> list[tuple[Case, Document]]:
    """Members of kernels that no pool held, so that nobody has judged them alone."""
    return [
        (pool.case, document)
        for pool, kernels in zip(raw.pools, found, strict=True)
        for name in members_of(kernels)
        if (pool.case.id, name) not in labels and (document := corpus.get(name)) is not None
    ]


def _kernel_tasks(raw: RawCandidates, judge: Judge, chosen: MiningSettings) -> list[Task]:
    """As many questions as a kernel takes whose members are the targets, each with all of them."""
    votes = min(2, chosen.votes or 2) if version_of(judge) else 1
    tasks = []
    for pool in raw.pools:
        targets = tuple(one for one in pool.documents if one.fqn in pool.targets)
        calls = votes * (1 + 2 * len(targets)) + 2 * len(targets)
        tasks += [Task(pool.case, targets, attempt) for attempt in range(calls)]
    return tasks
