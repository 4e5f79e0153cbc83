"""Progressive expansion: from one document to a set that the judge calls sufficient.

Is the set sufficient? If not, what is missing, in the judge's words; search for it, add the best, ask again.
While the same thing stays missing, the next candidates are added by twos, fours, eights: the right one is
among them sooner, and what was added in vain goes out again when the set is minimised. A NO is believed at
once, since a wrong one costs a round and no more; a YES ends the search and must lead.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from dartboard.mining.documents import Document
from dartboard.mining.kernels.searching import Search
from dartboard.mining.kernels.voting import Panel

STAGE = "expand"
_WORD = re.compile(r"\w+")


@dataclass(slots=True)
class Expansion:
    """The rounds of an expansion: the documents that each added, the start first."""

    panel: Panel
    search: Search
    rounds: list[list[Document]] = field(default_factory=list)

    @property
    def documents(self) -> list[Document]:
        """All that was gathered."""
        return [document for added in self.rounds for document in added]

    def run(self, start: Sequence[Document], *, most_rounds: int) -> bool:
        """Whether a sufficient set was found in so many rounds of adding."""
        self.rounds = [list(start)] if start else [self.search.candidates("")[:1]]
        before, width = None, 1
        for _ in range(most_rounds):
            if self._sufficient():
                return True
            missing = self.panel.missing(self.documents)
            width = 2 * width if before is not None and same_words(before, missing) else 1
            added = self._next(missing, width)
            if not added:
                return False
            self.rounds.append(added)
            before = missing
        return self._sufficient()

    def _next(self, missing: str, width: int) -> list[Document]:
        """The best candidates; what is missing by name is added all at once."""
        known = self.documents
        named = [one for one in self.search.named(missing) if one not in known]
        return self.search.candidates(missing, known)[: max(width, len(named))]

    def _sufficient(self) -> bool:
        documents = self.documents
        return self.panel.first(STAGE, documents) == "YES" and self.panel.decide(STAGE, documents) == "YES"


def same_words(first: str, second: str) -> bool:
    """Whether two wishes share most of their words."""
    a, b = (set(_WORD.findall(words.lower())) for words in (first, second))
    return 2 * len(a & b) > len(a | b) or a == b
