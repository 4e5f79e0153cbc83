"""For people with arrays: :func:`select`, :func:`select_many`, and the methods by name."""

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import partial
from inspect import signature
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dartboard.blas import SMALL, one_thread_each, threads_for
from dartboard.deadline import check
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.near_duplicates import groups_of_close
from dartboard.plugins import find, names
from dartboard.selection.baselines import MMR, Exhaustive, NearDuplicateFilter, Random, TopK
from dartboard.selection.greedy import Dartboard
from dartboard.selection.kernel import Auto, check_sigma
from dartboard.selection.limits import Limits
from dartboard.selection.pool import (
    Pool,
    check_rankings,
    check_weights,
    dimensions_of,
    from_embeddings,
    log_softmax,
    with_lowest,
)
from dartboard.selection.result import Selection
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA, as_matrix, check_matrix


class Method(Protocol):
    """A way to select."""

    name: str

    def select(self, pool: Pool, limits: Limits) -> Selection:
        """The picks of one query."""


METHODS: dict[str, type[Method]] = {
    method.name: method for method in (Dartboard, MMR, TopK, NearDuplicateFilter, Random, Exhaustive)
}

_LIMITS = frozenset(field.name for field in fields(Limits)) - {"k", "seen"}


def method_of(method: str | Method) -> Method:
    """A method by name with its defaults, one of our own or a plug-in's, or the method itself."""
    if not isinstance(method, str):
        return method
    if method in METHODS:
        return METHODS[method]()
    plugin = find("selector", method)
    if plugin is None:
        known = ", ".join((*METHODS, *names("selector")))
        raise ConfigError(f"unknown method {method!r}: choose one of {known}", field="method")
    made: Method = plugin.make(("name", "select"))
    return made


def select(
    embeddings: npt.ArrayLike,
    query: npt.ArrayLike,
    k: int | None = None,
    *,
    weights: npt.ArrayLike | None = None,
    offset: int = 0,
    seen: npt.ArrayLike | None = None,
    method: str | Method = "dartboard",
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    scores: npt.ArrayLike | None = None,
    temperature: float | Auto = "auto",
    targets: npt.ArrayLike | None = None,
    texts: Sequence[str] | None = None,
    groups: npt.ArrayLike | None = None,
    prefer: npt.ArrayLike | None = None,
    **limits: Any,
) -> Selection:
    """Select the candidates that together say most about a query.

    Args:
        embeddings, query: candidates, ``(n, d)``, and a query, ``(d,)``: whatever NumPy can read (arrays,
            lists, data frames of numbers, a column whose cells are vectors, tensors on the CPU). Several
            questions, ``(m, d)``, are answered together, by the mixture of their probable targets; the
            result says which question each pick serves.
        k: how many to pick; 5, unless there is a ``token_budget``.
        weights: ``(m,)`` how much each of several questions counts; equal by default.
        offset: leave out so many picks, those of earlier pages: ``k=5, offset=5`` is the second page.
        seen: what the reader has already, as positions of candidates or as vectors, ``(s, d)``: it counts as
            covered and is not picked again, nor is anything that adds nothing to it.
        method: a name such as ``"mmr"``, or a method with its parameters: ``MMR(relevance_weight=0.5)``.
        sigma: the width of P(t|q), 1e-5 to 10; ``"auto"`` estimates it from the candidates.
        distance: ``scaled_cosine``, ``(1 - cos) / 2``, or ``euclidean``.
        scores: one a candidate, from any retriever: they replace the distances to the query, as
            ``softmax(scores / temperature)``.
        temperature: for ``scores``; ``"auto"`` is their standard deviation.
        targets: ``(T, d)`` a vocabulary to cover instead of the candidates.
        texts: one a candidate: near-duplicates among them are removed before selection
            (:func:`dartboard.near_duplicates.near_duplicates`). Vectors alone cannot tell a copy from another
            version with another number in it.
        groups: ``(n,)`` numbers, equal for near-duplicates, where you know them already.
        prefer: ``(n,)`` numbers: of near-duplicates, the one with the largest is picked, such as the newest;
            by default the most relevant one.
        limits: the fields of :class:`Limits`: ``token_budget`` with ``costs``, ``min_gain_share``,
            ``max_per_source`` with ``sources``, ``max_per`` with ``fields``, ``must_include``, ``exclude``,
            ``min_similarity``, ``relevance_below``.

    Returns:
        An index into the candidates (``frame.iloc[select(frame["embedding"], query)]``) that also says what
        each pick adds and represents.

    Raises:
        InvalidInputError: vectors are empty, not finite, all zeros, or of different lengths.
        ConfigError: an option is outside its range, or two options exclude each other.
        TypeError: an option is unknown.

    Example:
        >>> import numpy as np
        >>> select(np.array([[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]]), [1.0, 0.4], k=2, sigma=0.1).indices
        array([1, 2])
    """
    if unknown := sorted(set(limits) - _LIMITS):
        known = (*signature(select).parameters, *_LIMITS)
        meant = next(iter(get_close_matches(unknown[0], known, 1)), None)
        raise TypeError(
            f"select() takes no {unknown[0]!r}{f', did you mean {meant!r}?' if meant else ''}; its limits "
            f"are {', '.join(sorted(_LIMITS))}, and what a method needs goes with the method: "
            "method=MMR(relevance_weight=0.7)"
        )
    if k is None and limits.get("token_budget") is None:
        k = 5
    chosen = method_of(method)
    bounds = with_pages_before(Limits(k=k, **limits), offset, chosen)
    if scores is not None and isinstance(chosen, MMR):
        raise ConfigError("mmr weighs similarities against each other and takes no scores")
    if texts is not None and groups is not None:
        raise ConfigError("texts and groups exclude each other: give one of them")
    if sigma != "auto" and not SMALLEST_SIGMA <= check_sigma(sigma) <= LARGEST_SIGMA:
        allowed = f"[{SMALLEST_SIGMA:g}, {LARGEST_SIGMA:g}]"
        raise ConfigError(f"sigma must be in {allowed} or 'auto', got {sigma}: scale vectors")
    vectors = as_matrix(embeddings)
    if seen is not None and dimensions_of(seen) == 2:  # further candidates, which are not picked
        shown = check_matrix(seen, name="seen", dim=vectors.shape[1])
        bounds = _after_candidates(bounds, len(vectors), len(shown))
        vectors = np.concatenate([vectors, shown])
        texts, prefer = _longer(texts, len(shown), ""), _longer(prefer, len(shown), 0.0)
        if groups is not None:
            groups = np.append(groups, np.max(groups) + 1 + np.arange(len(shown)))
        if scores is not None:
            scores = with_lowest(scores, len(shown))
    elif seen is not None:
        positions: Any = seen if isinstance(seen, Iterable) else [seen]
        bounds = replace(bounds, seen=positions)
    with threads_for(len(vectors)):
        pool = from_embeddings(
            query,
            vectors,
            weights=weights,
            sigma=sigma,
            distance=distance,
            targets=targets,
            groups=groups if texts is None else partial(groups_of_close, texts=texts),
            ranking=scores if groups is not None or texts is not None else None,
            prefer=prefer,
        )
        if scores is not None and pool.questions is not None:
            shares = check_weights(weights, len(pool.questions))
            by_question = check_rankings(scores, len(shares), len(vectors))
            pool = pool.reweighted(np.stack([log_softmax(one, temperature) for one in by_question]), shares)
        elif scores is not None:
            pool = pool.reweighted(log_softmax(scores, temperature))
        return chosen.select(pool, bounds).after(offset)


def with_pages_before(limits: Limits, offset: int, method: Method) -> Limits:
    """The limits that select the pages before ``offset`` as well: a page is cut out of a longer selection.

    Raises:
        ConfigError: ``offset`` is no whole number >= 0, or a longer selection may begin with other picks.
    """
    if not isinstance(offset, Integral) or isinstance(offset, bool) or offset < 0:
        raise ConfigError(f"offset must be a whole number >= 0, got {offset!r}")
    if not offset:
        return limits
    if limits.token_budget is not None or limits.k is None:
        raise ConfigError("offset counts picks and goes with k, not with token_budget: give k alone")
    if isinstance(method, Exhaustive):
        raise ConfigError("exhaustive has no pages: its best 10 need not begin with its best 5")
    return replace(limits, k=limits.k + int(offset))


def _after_candidates(limits: Limits, n: int, seen: int) -> Limits:
    """The limits of n candidates, with ``seen`` further ones that were already shown."""
    return replace(
        limits,
        seen=range(n, n + seen),
        costs=_longer(limits.costs, seen, 1.0),
        sources=_longer(limits.sources, seen, None),
        fields={name: _longer(values, seen, None) for name, values in (limits.fields or {}).items()},
    )


def _longer(values: Any, count: int, filler: Any) -> Any:
    return None if values is None else [*values, *[filler] * count]


def select_many(
    embeddings: Sequence[npt.ArrayLike] | npt.NDArray[Any],
    queries: npt.ArrayLike,
    k: int | None = None,
    *,
    sigma: float | Auto = "auto",
    threads: int | None = None,
    texts: Sequence[Sequence[str]] | None = None,
    groups: Sequence[npt.ArrayLike] | None = None,
    **options: Any,
) -> list[Selection]:
    """Run :func:`select` for many queries, in threads.

    Args:
        embeddings: for each query its candidates, ``(n_i, d)``.
        queries: ``(m, d)``.
        k, sigma: as in :func:`select`.
        threads: how many; None takes one for small pools, else one per processor.
        texts, groups: as in :func:`select`, for each query.
        options: other options of :func:`select`.

    Returns:
        A selection per query, in order.

    Raises:
        InvalidInputError: the inputs have different lengths, or as in :func:`select`.
        ConfigError: as in :func:`select`.

    Example:
        >>> vectors = [[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]]
        >>> [found.indices.tolist() for found in select_many([vectors] * 2, [[1.0, 0.4], [0.4, 1.0]], k=1)]
        [[1], [2]]
    """
    k = 5 if k is None and options.get("token_budget") is None else k
    Limits(k=k, token_budget=options.get("token_budget"), costs=options.get("costs"))
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"threads must be a whole number >= 1, got {threads!r}")
    asked = np.asarray(queries)
    if asked.ndim != 2 or len(asked) != len(embeddings):
        raise InvalidInputError(
            f"{len(embeddings)} pools for queries of shape {asked.shape}: need a matrix with one row a pool"
        )
    for name, given in (("texts", texts), ("groups", groups)):
        if given is not None and len(given) != len(asked):
            raise InvalidInputError(
                f"{len(given)} lists of {name} for {len(asked)} queries: need one a query"
            )

    def answer(some: range) -> list[Selection]:
        found = []
        for i in some:
            check()
            read = None if texts is None else texts[i]
            known = None if groups is None else groups[i]
            found.append(select(embeddings[i], asked[i], k, sigma=sigma, texts=read, groups=known, **options))
        return found

    small = all(np.shape(one)[:1] <= (SMALL,) for one in embeddings)  # threads would wait for Python
    workers = threads or (1 if small else os.cpu_count() or 1)
    size = max(1, min(16, len(asked) // (4 * workers)))
    blocks = [range(len(asked))[start : start + size] for start in range(0, len(asked), size)]
    context = copy_context()
    with one_thread_each(), ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda block: context.copy().run(answer, block), blocks)
        return [selection for block in found for selection in block]
