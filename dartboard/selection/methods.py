"""One line for people with arrays: :func:`select`, and the methods by name."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.near_duplicates import candidate_groups
from dartboard.plugins import find, names
from dartboard.selection.baselines import MMR, Exhaustive, NearDuplicateFilter, Random, TopK
from dartboard.selection.blas import threads_for
from dartboard.selection.candidates import from_embeddings, log_softmax
from dartboard.selection.dartboard import Dartboard
from dartboard.selection.kernels import Auto, check_sigma
from dartboard.selection.limits import Limits
from dartboard.selection.pool import Pool
from dartboard.selection.result import Selection
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA
from dartboard.wrong_names import right_name


class Method(Protocol):
    """A way to select."""

    name: str

    def select(self, pool: Pool, limits: Limits) -> Selection:
        """The picks of one query."""


METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Dartboard, MMR, TopK, NearDuplicateFilter, Random, Exhaustive)
}

_LIMITS = frozenset(field.name for field in fields(Limits)) - {"k"}


def method_of(method: str | Method) -> Method:
    """A method by name with its defaults, one of our own or a plug-in's, or the method itself."""
    if not isinstance(method, str):
        return method
    if method in METHODS:
        return METHODS[method]()
    plugin = find("selector", method)
    if plugin is None:
        known = ", ".join((*METHODS, *names("selector")))
        raise ConfigError(f"unknown method {method!r}: choose one of {known}")
    made: Method = plugin.make(("name", "select"))
    return made


def select(
    embeddings: npt.ArrayLike,
    query: npt.ArrayLike,
    k: int | None = None,
    *,
    method: str | Method = "dartboard",
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    scores: npt.ArrayLike | None = None,
    temperature: float | Auto = "auto",
    targets: npt.ArrayLike | None = None,
    texts: Sequence[str] | None = None,
    groups: npt.ArrayLike | None = None,
    **limits: Any,
) -> Selection:
    """Select the candidates that together say most about a query.

    Parameters
    ----------
    embeddings, query
        Candidates, ``(n, d)``, and a query, ``(d,)``: whatever NumPy can read (arrays, lists, data frames
        of numbers, a column whose cells are vectors, tensors on the CPU).
    k
        How many to pick: 5 unless a ``token_budget`` takes its place.
    sigma
        The spread of a query around its target; ``"auto"`` estimates it from the candidates.
    scores
        One a candidate, from any retriever: they replace the distances to the query, as
        ``softmax(scores / temperature)``.
    targets
        ``(T, d)`` a vocabulary to cover instead of the candidates.
    texts
        One a candidate: near-duplicates among them are removed before selection
        (:func:`dartboard.near_duplicates.near_duplicates`). Vectors alone cannot tell a copy from
        another version with another number in it.
    groups
        ``(n,)`` numbers, equal for near-duplicates, where you know them already.
    limits
        The fields of :class:`Limits`: ``token_budget`` with ``costs``, ``min_gain_share``,
        ``max_per_source`` with ``sources``, ``must_include``, ``exclude``, ``min_similarity``.

    Returns
    -------
    Selection
        An index into the candidates (``frame.iloc[select(frame["embedding"], query)]``) that also says
        what each pick adds and represents.

    >>> import numpy as np
    >>> select(np.array([[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]]), [1.0, 0.4], k=2, sigma=0.1).indices
    array([1, 2])
    """
    for name, values in (
        ("embeddings", embeddings),
        ("query", query),
        ("scores", scores),
        ("targets", targets),
    ):
        _refuse_hidden(name, values)
    if unknown := sorted(set(limits) - _LIMITS):
        meant = right_name(unknown[0], ("k", *_LIMITS))
        raise TypeError(
            f"select() takes no {unknown[0]!r}{f', did you mean {meant!r}?' if meant else ''}; its limits "
            f"are {', '.join(sorted(_LIMITS))}, and what a method needs goes with the method: "
            "method=MMR(relevance_weight=0.7)"
        )
    if k is None and limits.get("token_budget") is None:
        k = 5
    chosen, bounds = method_of(method), Limits(k=k, **limits)
    if scores is not None and isinstance(chosen, MMR):
        raise ConfigError("mmr weighs similarities against each other and takes no scores")
    if texts is not None:
        if groups is not None:
            raise ConfigError("texts and groups exclude each other: give one of them")
        groups = candidate_groups(embeddings, texts)
    if sigma != "auto" and not SMALLEST_SIGMA <= check_sigma(sigma) <= LARGEST_SIGMA:
        raise ConfigError(
            f"sigma must be in [{SMALLEST_SIGMA:g}, {LARGEST_SIGMA:g}] or 'auto', got {sigma}: scale vectors"
        )
    with threads_for(_count(embeddings)):
        pool = from_embeddings(
            query,
            embeddings,
            sigma=sigma,
            distance=distance,
            targets=targets,
            groups=groups,
            ranking=scores if groups is not None else None,
        )
        if scores is not None:
            pool = pool.reweighted(log_softmax(scores, temperature))
        return chosen.select(pool, bounds)


def _count(embeddings: npt.ArrayLike) -> int:
    """How many rows there are; 0 for what has no rows, which is an error elsewhere."""
    try:
        return len(embeddings)  # type: ignore[arg-type]
    except TypeError:
        return 0


def _refuse_hidden(name: str, values: npt.ArrayLike | None) -> None:
    """Refuse a masked array that hides values: they would be read as if they were there."""
    if isinstance(values, np.ma.MaskedArray) and (hidden := int(np.sum(values.mask))):
        raise InvalidInputError(
            f"{name} is a masked array that hides {hidden:,} value{'' if hidden == 1 else 's'}, and a mask "
            "is not looked at: give the rows without hidden values (numpy.ma.compress_rows), or leave "
            "candidates out with exclude"
        )
