"""Which sections make a piece together: the largest families that fit, and small neighbours joined."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import groupby, takewhile

from dartboard.ingest.documents import Section
from dartboard.ingest.headings import join_bare_headings
from dartboard.ingest.units import CountTokens


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring sections taken together. ``path`` is what they have in common, or that of the largest;
    ``named`` are the paths of all that were joined. ``body`` is where the text below the heading begins.
    """

    start: int
    end: int
    path: tuple[str, ...]
    context: str
    tokens: int
    named: tuple[tuple[str, ...], ...]
    body: int

    @property
    def title(self) -> str:
        """``Install > Linux``, or of several ``Install > Linux; macOS``."""
        return title_of(self.named)


def stretches(
    text: str, sections: Sequence[Section], size: int, smallest: int, count: CountTokens
) -> list[Stretch]:
    """Stretches in order, together the whole text. One that exceeds ``size`` is a single section, with the
    headings before it that have no text of their own.
    """
    return _Planner(text, size, smallest, count).plan(join_bare_headings(text, sections), 0)


@dataclass(frozen=True, slots=True)
class _Planner:
    text: str
    size: int
    smallest: int
    count: CountTokens

    def plan(self, sections: Sequence[Section], depth: int) -> list[Stretch]:
        """Sections grouped by their path down to ``depth``, groups that do not fit by one level more."""
        found: list[Stretch] = []
        for _, members in groupby(sections, key=lambda section: section.path[: depth + 1]):
            family = list(members)
            whole = self._whole(family)
            if len(family) == 1 or whole.tokens <= self.size:
                found.append(whole)
            elif all(len(section.path) <= depth + 1 for section in family):
                found += [self._whole([section]) for section in family]
            else:
                found += self.plan(family, depth + 1)
        return self._joined(found)

    def _whole(self, family: Sequence[Section]) -> Stretch:
        path = reduce(_shared, (section.path for section in family))
        start, end = family[0].start, family[-1].end
        tokens = self.count(self.text[start:end])
        body = start if family[0].body is None else family[0].body
        return Stretch(start, end, path, family[0].context, tokens, (path,), body)

    def _joined(self, parts: list[Stretch]) -> list[Stretch]:
        """Those of fewer than ``smallest`` tokens with the neighbour that is closer kin and not too long."""
        at = 0
        while at < len(parts):
            pairs = [pair for pair in (at, at - 1) if 0 <= pair < len(parts) - 1]
            pairs.sort(key=lambda pair: -len(_shared(parts[pair].path, parts[pair + 1].path)))
            small = parts[at].tokens < self.smallest
            at = next((pair for pair in pairs if small and self._join(parts, pair)), at + 1)
        return parts

    def _join(self, parts: list[Stretch], at: int) -> bool:
        """Make two neighbours one, if they fit."""
        left, right = parts[at : at + 2]
        tokens = self.count(self.text[left.start : right.end])
        if tokens > self.size:
            return False
        larger = left if left.tokens >= right.tokens else right
        path = larger.path
        if larger.tokens < self.smallest:  # neither speaks for both
            path = _shared(left.path, right.path) or path
        named = left.named + right.named
        parts[at : at + 2] = [Stretch(left.start, right.end, path, left.context, tokens, named, left.body)]
        return True


def title_of(paths: Sequence[tuple[str, ...]]) -> str:
    """All sections by name, what they lie in once: ``Install > Linux; macOS``, ``Keys; Limits``.

    Text that stands before the first heading, or under the common one, has no name of its own.
    """
    named = list(dict.fromkeys(path for path in paths if path))
    if not named:
        return ""
    within = reduce(_shared, named)
    own = [" > ".join(path[len(within) :]) for path in named if len(path) > len(within)]
    return " > ".join([*within, *(["; ".join(own)] if own else [])])


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    pairs = zip(left, right, strict=False)
    return tuple(name for name, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
