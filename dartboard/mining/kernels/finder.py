"""The kernel of a case: the documents that together answer its question, and none more.

Expansion finds a sufficient set, minimality makes it small, and then each member is tried to be replaced:
other documents that serve as well are kept as alternatives, since a retriever that finds them is right, too.

- ``minimal``: sufficient, and without any one member no longer so;
- ``sufficient``: the judge said YES, but not of every member that it is needed (it was unsure, or the calls
  ran out);
- ``unresolved``: no sufficient set was found; the kernel is empty, and the trail says what was tried.

The same judge gives the same kernel: nothing is drawn, and ties go by name.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from dartboard.errors import ConfigError
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.documents import Corpus, Document
from dartboard.mining.judges.base import version_of
from dartboard.mining.kernels.expansion import Expansion
from dartboard.mining.kernels.minimality import Minimality
from dartboard.mining.kernels.searching import Search
from dartboard.mining.kernels.voting import LEAD, VOTES, Panel, SpentError, Step
from dartboard.mining.pool import ContextPool
from dartboard.mining.verdicts import Judge

Status = Literal["minimal", "sufficient", "unresolved"]

ROUNDS = 8
MOST_CALLS = 200
ALTERNATIVES = 2
_STAGE = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Names of documents by rising name; each of ``alternatives`` is a whole set that serves as well."""

    case: str
    contexts: tuple[str, ...]
    status: Status
    alternatives: tuple[tuple[str, ...], ...] = ()
    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    trail: tuple[Step, ...] = ()
    judge: str = ""


def find_kernel(
    case: Case,
    pool: ContextPool,
    corpus: Corpus | None,
    judge: Judge,
    *,
    most_rounds: int = ROUNDS,
    votes: int | None = None,
    lead: int = LEAD,
    most_calls: int = MOST_CALLS,
    alternatives: int = ALTERNATIVES,
) -> Kernel:
    """The kernel of one case; without a ``corpus`` the pool is all that is searched.

    ``votes`` is the most that one question is asked: by default once for judges without a prompt, which
    repeat themselves, and up to 7 times for others. ``alternatives`` is how many documents are tried in
    the place of each member.
    """
    for name, value in (("most_rounds", most_rounds), ("alternatives", alternatives)):
        if value < 0:
            raise ConfigError(f"{name} must be >= 0, got {value}")
    if votes is None:
        votes = VOTES if version_of(judge) else 1
    panel = Panel(case, judge, votes=votes, lead=lead, most_calls=most_calls)
    search = Search(pool, corpus)
    expansion = Expansion(panel, search)
    start = [one for one in pool.documents if one.fqn == pool.target]
    sufficient = False
    with suppress(SpentError):
        sufficient = expansion.run(start, most_rounds=most_rounds)
    if not sufficient:
        return _kernel(panel, judge, [], "unresolved")
    smaller = Minimality(panel, expansion.documents)
    found: list[tuple[str, ...]] = []
    with suppress(SpentError):
        smaller.run(expansion.rounds)
        _replace(panel, search, smaller.kept, alternatives, found)
    return _kernel(panel, judge, smaller.kept, "minimal" if smaller.proved else "sufficient", found)


def _replace(
    panel: Panel, search: Search, kept: list[Document], tries: int, found: list[tuple[str, ...]]
) -> None:
    """Try others in the place of each member. A NO is believed at once: it loses an alternative, no more."""
    for member in kept:
        rest = [one for one in kept if one is not member]
        for candidate in search.replacements(panel.missing(rest) if rest else "", kept)[:tries]:
            changed = [*rest, candidate]
            if panel.first(_STAGE, changed) == "YES" and panel.decide(_STAGE, changed) == "YES":
                found.append(tuple(sorted(one.fqn for one in changed)))


def _kernel(
    panel: Panel,
    judge: Judge,
    documents: list[Document],
    status: Status,
    alternatives: list[tuple[str, ...]] | None = None,
) -> Kernel:
    return Kernel(
        case=panel.case.id,
        contexts=tuple(sorted(one.fqn for one in documents)),
        status=status,
        alternatives=tuple(dict.fromkeys(alternatives or ())),
        calls=panel.calls,
        usage=panel.usage,
        trail=panel.trail,
        judge=judge.name,
    )
