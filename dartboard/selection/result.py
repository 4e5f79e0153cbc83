"""What a selection says about itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.selection.kernels import Distance
from dartboard.types import FloatArray, IntArray


class Sigma(NamedTuple):
    """A σ and its source: ``given``, ``candidates``, ``model``, ``scores``, ``fallback`` or ``none``."""

    value: float
    source: str


class Origin(NamedTuple):
    """A query and its candidates as the caller gave them: vectors, or distances where ``vectors`` is False.

    Kept so that a result can be drawn when somebody looks at it; nothing is copied until then.
    """

    query: Any
    candidates: Any
    distance: Distance
    vectors: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Selection:
    """Picks in order, and why.

    Arrays run along the picks. ``gains`` and ``coverage`` are shares of what the whole pool would cover,
    so gains add up to the last coverage, whatever method made the picks; ``log_gains`` also tell gains
    apart that are too small for a plain number. ``bound`` says that no set within the same limits covers
    more than ``coverage[-1] / bound``. ``owners`` runs along the targets: the pick that covers each, or -1.
    With ``seen``, ``coverage`` includes what was ``covered_before`` the first pick.

    Of several questions, ``question_of`` is the one that each pick serves most, ``question_gains``,
    ``(picks, m)``, how its gain splits between them, and ``question_coverage``, ``(m,)``, how much of the
    probable targets of each is covered in the end.

    ``near_copies`` is how many candidates are near-duplicates of a more relevant one. Dartboard removes them:
    it picks them only where nothing else is left. Other methods may pick them.

    A selection can be used as an index wherever an array of positions can: ``vectors[selection]``,
    ``frame.iloc[selection]``. It shows itself as a table, and in a notebook as a map with gains; for that it
    refers to what it was selected from (``origin``) and to log P(t|q) up to a constant (``relevance``).
    """

    indices: IntArray
    gains: FloatArray
    log_gains: FloatArray
    coverage: FloatArray
    similarity: FloatArray
    bound: float
    owners: IntArray
    targets: IntArray | None
    sigma: Sigma
    method: str
    parameters: dict[str, Any] = field(default_factory=dict)
    relevance: FloatArray | None = None
    origin: Origin | None = None
    near_copies: int = 0
    covered_before: float = 0.0
    question_of: IntArray | None = None
    question_gains: FloatArray | None = None
    question_coverage: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices.tolist())

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.indices, dtype=dtype, copy=copy)

    def after(self, offset: int) -> "Selection":
        """The picks from number ``offset`` on: the page that follows the first ``offset`` picks."""
        if not offset:
            return self
        columns = ("indices", "gains", "log_gains", "coverage", "similarity", "question_of", "question_gains")
        page: dict[str, Any] = {
            name: None if (all_ := getattr(self, name)) is None else all_[offset:] for name in columns
        }
        return replace(self, owners=np.maximum(self.owners - offset, -1), **page)

    @property
    def stands_for(self) -> tuple[IntArray, ...]:
        """For each pick, the targets that it covers best of all picks, and at least by half.

        They are positions of candidates, the pick's own among them, or entries of the vocabulary.
        """
        order = self.owners.argsort(kind="stable")
        edges = self.owners[order].searchsorted(np.arange(len(self) + 1))
        named = order if self.targets is None else self.targets[order]
        return tuple(named[start:end] for start, end in pairwise(edges))

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row a pick, under the candidates' positions; ``stands_for`` has its own."""
        from dartboard.display.selection_view import frame_of

        return frame_of(self)

    def __repr__(self) -> str:
        from dartboard.display.selection_view import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dartboard.display.selection_view import html_of

        return html_of(self)
