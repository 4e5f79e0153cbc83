"""The offline judge: does a known answer string stand in the contexts?

It reads nothing but strings. A context that names the answer while speaking of something else is a YES to
it, and an answer in other words a NO; benchmarks say how often on real data.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.answer_tokens import ARTICLES, ordinal, tokenize
from dartboard.mining.judges.base import OfflineJudge, Verdict
from dartboard.mining.judges.dates import Day, Token, as_one
from dartboard.mining.judges.text_folding import Folded, fold

_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+(?=[A-Z0-9\"'(\[])|\n+")
_LONGEST_EVIDENCE = 400
_BARE = frozenset({"yes", "no", "true", "false"})


@dataclass(frozen=True, slots=True)
class AnswerJudge(OfflineJudge):
    """YES where every facet of the answer is found in some context; the evidence is the sentence around it.

    Without contexts it says whether the question gives its own answer away.
    """

    name: str = "answers"

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """YES or NO by the case's answer strings; UNSURE where it has none."""
        facets = facets_of(case)
        if not facets:
            return Verdict(label="UNSURE", reason="the case has no known answer strings", judge=self.name)
        if any(_is_bare(facet) for facet in facets):
            reason = "the answer is a bare yes or no, which strings cannot show"
            return Verdict(label="UNSURE", reason=reason, judge=self.name)
        texts = [context.text for context in contexts] or [case.question]
        evidence: list[str] = []
        for facet in facets:
            found = first_match(facet, texts)
            if found is None:
                return Verdict(
                    label="NO", missing=facet[0], reason=f"not found: {_shown(facet)}", judge=self.name
                )
            if found not in evidence:
                evidence.append(found)
        where = "the contexts" if contexts else "the question itself"
        return Verdict(
            label="YES",
            evidence=" … ".join(evidence),
            reason=f"found in {where}: {'; '.join(facet[0] for facet in facets)}",
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
    return bool(facets) and not any(_is_bare(facet) for facet in facets)


def _is_bare(facet: Sequence[str]) -> bool:
    return all(answer.strip(" .!").lower() in _BARE for answer in facet)


def first_match(aliases: Sequence[str], texts: Sequence[str]) -> str | None:
    """The sentence around the first alias that stands in a text, or None."""
    for text in texts:
        for alias in aliases:
            span = find(alias, text)
            if span is not None:
                return widened(text, *span)
    return None


def find(answer: str, text: str) -> tuple[int, int] | None:
    """Where the answer stands in the text, as whole tokens; symbols alone are looked for as they are."""
    wanted = _pattern(answer)
    if not wanted:
        start = text.find(answer.strip())
        return None if start < 0 else (start, start + len(answer.strip()))
    parts = tokenize(text)
    for place in _starts(wanted, parts.places):
        end = _match(wanted, parts.tokens, place)
        if end is not None:
            return parts.folded.span(parts.tokens[place].start, parts.tokens[end - 1].end)
    return _verbatim(answer, parts.folded) if all(_is_plain(token) for token in wanted) else None


def _verbatim(answer: str, folded: Folded) -> tuple[int, int] | None:
    """Where the words stand as they are: "metres" in "20 metres", which is a unit there and no word."""
    words = r"\s+".join(re.escape(word) for word in fold(answer).text.split())
    found = re.search(rf"(?<!\w)(?<!\w'){words}(?!\w|'\w|\+\+|\#)", folded.text)
    return None if found is None else folded.span(*found.span())


def _is_plain(token: Token) -> bool:
    """A word that is no number, day or rank: "five" is not in "twenty-five", nor "first" in its rank."""
    return isinstance(token.value, str) and not token.value[:1].isdigit()


def widened(text: str, start: int, end: int) -> str:
    """The sentence or line around a span, cut at words where it is very long."""
    bounds = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    left = max(bound for bound in bounds if bound <= start)
    right = min(bound for bound in bounds if bound >= end)
    if right - left > _LONGEST_EVIDENCE:
        spare = max(0, (_LONGEST_EVIDENCE - (end - start)) // 2)
        left, right = max(left, start - spare), min(right, end + spare)
        left = min(start, text.find(" ", left) + 1 or start) if text[left - 1 : left].strip() else left
        right = max(end, text.rfind(" ", end, right)) if text[right : right + 1].strip() else right
    return text[left:right].strip()


@lru_cache(maxsize=4096)
def _pattern(answer: str) -> tuple[Token, ...]:
    """The tokens of an answer, without articles unless the answer ends in one: vitamin A."""
    found = tokenize(answer).tokens
    return tuple(
        token for at, token in enumerate(found) if token.value not in ARTICLES or at == len(found) - 1
    )


def _starts(wanted: tuple[Token, ...], places: dict[object, list[int]]) -> list[int]:
    """The places where a match can begin, rising."""
    first = wanted[0]
    starts = set(places.get(first.value, ()))
    if not isinstance(first.value, str):
        starts.update(places.get(Day, ()))
    if isinstance(first.value, Decimal):
        starts.update(places.get(_rank(first.value), ()))
    if first.glued:
        starts.update(places.get(as_one(*wanted[:2]), ()))
    return sorted(starts)


def _match(wanted: tuple[Token, ...], found: tuple[Token, ...], place: int) -> int | None:
    """The end of a match that starts at ``place``; articles in the text are passed over."""
    at, need = place, 0
    while need < len(wanted):
        if at >= len(found):
            return None
        used, met = _step(wanted, need, found, at)
        if met:
            at, need = at + used, need + met
        elif need and found[at].value in ARTICLES:
            at += 1
        else:
            return None
    return at


def _step(wanted: tuple[Token, ...], need: int, found: tuple[Token, ...], at: int) -> tuple[int, int]:
    """How many tokens of the text meet how many of the answer: usually one each, else (0, 0)."""
    if _fits(wanted[need], found[at]):
        return 1, 1
    if found[at].glued and as_one(*found[at : at + 2]) == wanted[need].value:
        return 2, 1
    if wanted[need].glued and as_one(*wanted[need : need + 2]) == found[at].value:
        return 1, 2
    return 0, 0


def _fits(wanted: Token, found: Token) -> bool:
    if isinstance(found.value, tuple):
        if isinstance(wanted.value, tuple):
            return any(day.says(want) for day in found.value for want in wanted.value)
        return isinstance(wanted.value, Decimal) and any(day.year == wanted.value for day in found.value)
    if isinstance(wanted.value, Decimal) and isinstance(found.value, str):
        return found.value == _rank(wanted.value)
    return wanted.value == found.value


def _rank(number: Decimal) -> str | None:
    """22 is also said by "22nd place"; nothing for fractions."""
    return ordinal(int(number)) if number > 0 and number % 1 == 0 else None


def _shown(facet: Sequence[str]) -> str:
    more = f" (or {len(facet) - 1} other spellings)" if len(facet) > 1 else ""
    return f"{facet[0]!r}{more}"
