"""What a search is asked for: one type that every door makes, and that the engine and the core take."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypedDict

import numpy as np

from dartboard.config import RERANKERS, RerankerType, check_choice, check_number, check_whole
from dartboard.embeddings.reader_tokenizer import Tokenizer
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.retrievers.query import check_query
from dartboard.selection import Limits, Method
from dartboard.selection.kernels import Auto
from dartboard.selection.methods import method_of, with_pages_before
from dartboard.selection.questions import MOST_QUESTIONS, check_weights
from dartboard.stores import Filter, parse_filter
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA, FloatArray, check_matrix
from dartboard.wrong_names import check_names

DEFAULT_K = 5
TRIAGE = 100
MOST_SEEN = 1000
MOST_CANDIDATES = 2000
"""Of several questions together: selection compares all pairs of candidates."""

_IDS = ("must_include", "exclude", "seen")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How much to select, from what, and how. Checked when it is made, not at the first query.

    Args:
        k: how many passages; 5 where neither it nor ``token_budget`` is given.
        token_budget: what the picks may cost together, in tokens of the embedding model or of ``tokenizer``.
        offset: leave out so many picks, those of earlier pages; a page is as stable as the collection.
        also: further questions, answered together with the query: the parts of a question, for instance.
        weights: how much the query and each of ``also`` count; equal by default.
        seen: what the reader has already, as ids of chunks or as vectors, ``(s, d)``. It counts as covered,
            and only what adds something to it is picked.
        method: ``dartboard``, or another selection method or its name, to compare.
        sigma: σ, or ``auto``: from the collection's calibration, else from the candidates.
        reranker: who scores query and passages: ``cosine``, ``crossencoder`` or ``hybrid``.
        triage_k: how many candidates to select from; for each question, but 2,000 at most together.
        where: a filter on metadata, also as text: ``year >= 2020``.
        must_include: ids of chunks that are picked first.
        exclude: ids of chunks that are left out.
        max_per_source: at most so many picks whose metadata agree in ``source_field``.
        source_field: the name of that field.
        max_per: the same for any fields: ``{"author": 2, "source": 3}``. A chunk without the field is not
            capped.
        prefer: a metadata field such as ``version`` or ``modified``: of near-duplicates, the one with the
            largest value is picked, not the most relevant one.
        tokenizer: whose tokens ``token_budget`` counts (:mod:`dartboard.embeddings.reader_tokenizer`).
        min_gain_share: stop once a pick adds less than this share of what the first added.
        min_similarity: leave out candidates whose cosine to the query is lower.
        sigma_min: the smallest σ that may be given, as in ``DartboardConfig``.

    Raises:
        ConfigError: a value is out of its range.
        InvalidInputError: ``where``, ``also`` or a list of ids are of another type, or a question is blank.
    """

    k: int | None = None
    token_budget: int | None = None
    offset: int = 0
    also: Sequence[str] = ()
    weights: Sequence[float] | None = None
    seen: Sequence[str] | FloatArray = ()
    method: Method | str = "dartboard"
    sigma: float | Auto = "auto"
    reranker: RerankerType = "cosine"
    triage_k: int = TRIAGE
    where: Filter | str | None = None
    must_include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_per_source: int | None = None
    source_field: str = "source"
    max_per: Mapping[str, int] | None = None
    prefer: str | None = None
    min_gain_share: float = 0.0
    min_similarity: float | None = None
    tokenizer: Tokenizer | None = None
    sigma_min: float = SMALLEST_SIGMA

    def __post_init__(self) -> None:
        if self.k is None and self.token_budget is None:
            object.__setattr__(self, "k", DEFAULT_K)
        object.__setattr__(self, "method", method_of(self.method))
        if isinstance(self.method, type) or not hasattr(self.method, "select"):
            raise ConfigError(
                f"method must be a name or a selection method, such as 'mmr' or MMR(), got {self.method!r}"
            )
        check_number("sigma_min", self.sigma_min, 1e-12, 1.0)
        if not isinstance(self.sigma, str) or self.sigma != "auto":
            check_number("sigma", self.sigma, self.sigma_min, LARGEST_SIGMA, " or be 'auto'")
        check_whole("triage_k", self.triage_k, 1, 1000)
        check_choice("reranker", self.reranker, RERANKERS)
        object.__setattr__(self, "where", as_filter(self.where))
        for name, what in (("also", "questions"), *dict.fromkeys(_IDS, "chunk ids").items()):
            given = getattr(self, name)
            if name == "seen" and np.ndim(given) == 2:
                object.__setattr__(self, name, check_matrix(given, name="seen"))
            else:
                object.__setattr__(self, name, _strings(name, what, given))
        for text in self.also:
            check_query(text, "a question in also")
        if len(self.also) >= MOST_QUESTIONS:
            raise ConfigError(
                f"also has {len(self.also)} questions: at most {MOST_QUESTIONS - 1} are allowed"
            )
        object.__setattr__(self, "weights", _weights(self.weights, len(self.also)))
        if len(self.seen) > MOST_SEEN:
            raise ConfigError(f"seen has {len(self.seen)} entries: at most {MOST_SEEN} are allowed")
        for name, ids in (("exclude", self.exclude), ("seen", self.seen_ids)):
            if both := set(self.must_include) & set(ids):
                raise ConfigError(f"chunk {min(both)!r} is both in must_include and in {name}")
        for name in ("source_field", "prefer"):
            value = getattr(self, name)
            if not (isinstance(value, str) and value) and not (name == "prefer" and value is None):
                raise ConfigError(f"{name} must be the name of a field, got {value!r}")
        if self.tokenizer is not None and not (callable(self.tokenizer) or isinstance(self.tokenizer, str)):
            raise ConfigError(f"tokenizer must be a name, a file or a function, got {self.tokenizer!r}")
        # These check k, budget, caps, shares and offset.
        fields = dict.fromkeys(self.max_per, ()) if isinstance(self.max_per, Mapping) else None
        limits = self.limits([], [], [*self.must_include, *self.seen_ids], fields)
        with_pages_before(limits, self.offset, method_of(self.method))

    @property
    def candidates_each(self) -> int:
        """How many candidates each question finds."""
        return min(self.triage_k, MOST_CANDIDATES // (1 + len(self.also)))

    @property
    def seen_ids(self) -> tuple[str, ...]:
        """The ids in ``seen``; none where it holds vectors."""
        return self.seen if isinstance(self.seen, tuple) else ()

    @property
    def seen_vectors(self) -> FloatArray | None:
        """The vectors in ``seen``, ``(s, d)``; None where it holds ids."""
        return None if isinstance(self.seen, tuple) else np.asarray(self.seen)

    @classmethod
    def of(cls, given: Self | None, changes: "SearchKeywords", function: str = "search") -> Self:
        """``given``, or the defaults, with some options changed.

        Raises:
            TypeError: ``given`` is something else, or an option does not exist; the message has the name
                that was probably meant.
        """
        if given is not None and not isinstance(given, cls):
            raise TypeError(f"options must be SearchOptions, got {given!r}: write {function}(query, k=5)")
        if not changes:
            return cls() if given is None else given
        check_names(changes, ["query", *(field.name for field in fields(cls))], function)
        if given is None:
            return cls(**changes)
        return replace(given, **changes)

    def limits(
        self,
        costs: Sequence[float],
        sources: Sequence[Any],
        ids: Sequence[str],
        fields: Mapping[str, Sequence[Any]] | None = None,
    ) -> Limits:
        """The limits of a selection from candidates of these ``ids``.

        ``costs``, ``sources`` and the values of ``max_per`` (``fields``) are one a candidate, where needed.
        """
        places: dict[str, int] = {}
        if self.must_include or self.exclude or len(self.seen):
            places = {id: at for at, id in enumerate(ids)}
        for name in ("must_include", "seen_ids"):
            for id in getattr(self, name):
                if id not in places:
                    option = name.removesuffix("_ids")
                    raise InvalidInputError(f"no chunk {id!r} among the candidates: check {option}")
        return Limits(
            k=self.k,
            token_budget=self.token_budget,
            costs=None if self.token_budget is None else costs,
            must_include=[places[id] for id in self.must_include],
            exclude=[places[id] for id in self.exclude if id in places],
            max_per_source=self.max_per_source,
            sources=None if self.max_per_source is None else sources,
            max_per=self.max_per,
            fields=fields,
            seen=[places[id] for id in self.seen_ids],
            min_gain_share=self.min_gain_share,
            min_similarity=self.min_similarity,
        )


def _strings(name: str, what: str, given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        raise InvalidInputError(f"{name} is a list of {what}, got one string: write [{given!r}]")
    listed = tuple(given) if isinstance(given, Iterable) else (given,)
    if not all(isinstance(one, str) for one in listed):
        raise InvalidInputError(f"{name} is a list of {what}, got {given!r}")
    return listed


def _weights(weights: Sequence[float] | None, others: int) -> tuple[float, ...] | None:
    """Weights of the query and of so many other questions, or None."""
    if weights is None:
        return None
    if not others:
        raise ConfigError("weights say how much the query and each question in also count: give also")
    check_weights(weights, others + 1)
    return tuple(float(weight) for weight in weights)


def as_filter(where: Filter | str | None) -> Filter | None:
    """A filter from what callers give."""
    if where is None or isinstance(where, Filter):
        return where
    if isinstance(where, str):
        return parse_filter(where)
    raise InvalidInputError(
        f"a filter is text such as 'year >= 2020' or what parse_filter makes, got {type(where).__name__}"
    )


class SearchKeywords(TypedDict, total=False):
    """The same options as keyword arguments: ``engine.search(query, k=8, where="year >= 2020")``."""

    k: int | None
    token_budget: int | None
    offset: int
    also: Sequence[str]
    weights: Sequence[float] | None
    seen: Sequence[str] | FloatArray
    method: Method | str
    sigma: float | Auto
    reranker: RerankerType
    triage_k: int
    where: Filter | str | None
    must_include: Sequence[str]
    exclude: Sequence[str]
    max_per_source: int | None
    source_field: str
    max_per: Mapping[str, int] | None
    prefer: str | None
    min_gain_share: float
    min_similarity: float | None
    tokenizer: Tokenizer | None
    sigma_min: float
