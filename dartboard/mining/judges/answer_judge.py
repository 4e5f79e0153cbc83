"""The offline judge: does a known answer string stand in the contexts?

It reads nothing but words. A context that names the answer while speaking of something else is a YES to
it, and an answer in other words a NO; benchmarks say how often on real data.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Verdict
from dartboard.mining.judges.words import ELLIPSIS, first_sentence

_BARE = frozenset({"yes", "no", "true", "false"})


@dataclass(frozen=True, slots=True)
class AnswerJudge:
    """YES where every facet of the answer is found in some context; the evidence is the sentence around it.

    Without contexts it says whether the question gives its own answer away.
    """

    name: str = "answers"

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """YES or NO by the case's answer strings; UNSURE where it has none."""
        if not is_decidable(case):
            reason = "the case has no known answer strings"
            if facets_of(case):
                reason = "the answer is a bare yes or no, which strings cannot show"
            return Verdict(label="UNSURE", reason=reason, judge=self.name)
        texts = [context.text for context in contexts] or [case.question]
        evidence: list[str] = []
        for facet in facets_of(case):
            found = first_sentence(facet, texts)
            if found is None:
                more = f" (or {len(facet) - 1} other spellings)" if len(facet) > 1 else ""
                reason = f"not found: {facet[0]!r}{more}"
                return Verdict(label="NO", missing=facet[0], reason=reason, judge=self.name)
            evidence.append(found)
        where = "the contexts" if contexts else "the question itself"
        return Verdict(
            label="YES",
            evidence=ELLIPSIS.join(dict.fromkeys(evidence)),
            reason=f"found in {where}: {'; '.join(facet[0] for facet in facets_of(case))}",
            judge=self.name,
        )


def facets_of(case: Case) -> tuple[tuple[str, ...], ...]:
    """The case's facets, each with its spellings; ``answers`` alone are one facet."""
    given = case.facets or (case.answers,)
    kept = (tuple(answer for answer in facet if answer.strip()) for facet in given)
    return tuple(facet for facet in kept if facet)


def is_decidable(case: Case) -> bool:
    """Whether the case has answer strings that can be looked for."""
    facets = facets_of(case)
    return bool(facets) and not any(
        all(answer.strip(" .!").lower() in _BARE for answer in facet) for facet in facets
    )
