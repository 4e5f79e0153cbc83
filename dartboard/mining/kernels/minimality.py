"""Minimality: leave out what the set does not need, until it needs every member.

First what a round of the expansion added is left out as a whole, and by halves where that is too much: junk
goes in a few calls. Then one member at a time is left out of what remains. A set from which no single member
can be left out is minimal; for a judge that never loses an answer by seeing more, no smaller subset suffices.
Both answers decide here, so both must lead.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dartboard.mining.documents import Document
from dartboard.mining.kernels.voting import Panel

STAGE = "leave out"


@dataclass(slots=True)
class Minimality:
    """A sufficient set that shrinks; ``kept`` is the smallest that the judge called sufficient so far."""

    panel: Panel
    kept: list[Document]
    proved: bool = False

    def run(self, groups: Sequence[Sequence[Document]]) -> None:
        """Shrink; ``proved`` afterwards says that every member was found to be needed."""
        for group in reversed(groups):
            if len(group) > 1:
                self._reduce(list(group))
        self.proved = self._one_by_one()

    def _reduce(self, group: list[Document]) -> None:
        """Leave out as much of a group as can be."""
        if self._without(group) == "YES" or len(group) == 1:
            return
        half = len(group) // 2
        # The best candidates stand first, so the second half is the likelier junk.
        self._reduce(group[half:])
        self._reduce(group[:half])

    def _one_by_one(self) -> bool:
        """Whether each member is needed; after one has gone, the others are asked about anew."""
        needed = 0
        # The start of the expansion is what the case believes in: it is doubted last.
        for document in reversed(list(self.kept)):
            label = self._without([document])
            if label == "YES":
                return self._one_by_one()
            needed += label == "NO"
        return needed == len(self.kept)

    def _without(self, group: Sequence[Document]) -> str:
        """The judge on the rest. Nothing at all is another question, and never sufficient here."""
        names = {one.fqn for one in group}
        rest = [one for one in self.kept if one.fqn not in names]
        if not rest:
            return "NO"
        label = self.panel.decide(STAGE, rest)
        if label == "YES":
            self.kept = rest
        return label
