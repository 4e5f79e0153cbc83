"""What a selection says about itself."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.errors import MissingExtraError
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
    """Picks in order, and why. Functions such as :func:`select` make it.

    It can be used as an index: ``vectors[selection]``, ``frame.iloc[selection]``. It prints as a table, and
    in a notebook as a map with gains.

    Args:
        indices: positions of the picks among the candidates, in order.
        gains, coverage: one for each pick, as shares of what the whole pool would cover: gains add up to the
            last coverage, whatever the method.
        log_gains: logarithms of the gains, also of those too small for a plain number.
        similarity: cosine of each pick to the query.
        bound: no set within the same limits covers more than ``coverage[-1] / bound``.
        owners: for each target the pick that covers it, or -1.
        targets: positions of the targets, or None for a vocabulary.
        sigma: the σ that was used, and its source.
        method, parameters: who picked, and with which parameters.
        relevance: log P(t|q) up to a constant.
        origin: what the picks were selected from, for drawing.
        near_copies: how many candidates are near-duplicates of a more relevant one. Dartboard picks them
            only if nothing else is left; other methods may pick them.
        covered_before: with ``seen``, the share that was covered before the first pick; ``coverage`` includes
            it.
        question_of: of several questions, the one that each pick serves most.
        question_gains: ``(picks, m)`` how each gain splits between the questions.
        question_coverage: ``(m,)`` how much of the probable targets of each question is covered in the end.

    Example:
        >>> from dartboard import select
        >>> found = select([[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]], [1.0, 0.4], k=2, sigma=0.1)
        >>> found.indices, found.stands_for
        (array([1, 2]), (array([0, 1]), array([2])))
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
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise MissingExtraError("pandas", "pandas", "a data frame") from error
        return pandas.DataFrame(
            {
                "similarity": self.similarity,
                "gain": self.gains,
                "coverage": self.coverage,
                "stands_for": [positions.tolist() for positions in self.stands_for],
            },
            index=pandas.Index(self.indices, name="position"),
        )

    def __repr__(self) -> str:
        from dartboard.explain.result_view import view_of
        from dartboard.explain.text_table import as_text

        return as_text(view_of(self, with_map=False))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dartboard.explain.html_card import as_html
        from dartboard.explain.result_view import view_of

        return as_html(view_of(self))
