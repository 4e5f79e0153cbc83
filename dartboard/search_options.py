"""What a search is asked for: one type that every door makes, and that the engine and the core take."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self, TypedDict

from dartboard.config import RERANKERS, RerankerType, check_choice, check_number, check_whole
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import Limits, Method
from dartboard.selection.kernels import Auto
from dartboard.selection.methods import method_of
from dartboard.stores import Filter, parse_filter
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA
from dartboard.wrong_names import check_names

DEFAULT_K = 5
TRIAGE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How much to select, from what, and how. Checked when it is made, not at the first query.

    Args:
        k: how many passages; 5 where neither it nor ``token_budget`` is given.
        token_budget: what the picks may cost together, in tokens of the embedding model.
        method: ``dartboard``, or another selection method or its name, to compare.
        sigma: σ, or ``auto``: from the collection's calibration, else from the candidates.
        reranker: who scores query and passages: ``cosine``, ``crossencoder`` or ``hybrid``.
        triage_k: how many candidates to select from.
        where: a filter on metadata, also as text: ``year >= 2020``.
        must_include: ids of chunks that are picked first.
        exclude: ids of chunks that are left out.
        max_per_source: at most so many picks whose metadata agree in ``source_field``.
        source_field: the name of that field.
        min_gain_share: stop once a pick adds less than this share of what the first added.
        min_similarity: leave out candidates whose cosine to the query is lower.
        sigma_min: the smallest σ that may be given, as in ``DartboardConfig``.

    Raises:
        ConfigError: a value is out of its range.
        InvalidInputError: ``where``, ``must_include`` or ``exclude`` are of another type.
    """

    k: int | None = None
    token_budget: int | None = None
    method: Method | str = "dartboard"
    sigma: float | Auto = "auto"
    reranker: RerankerType = "cosine"
    triage_k: int = TRIAGE
    where: Filter | str | None = None
    must_include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    max_per_source: int | None = None
    source_field: str = "source"
    min_gain_share: float = 0.0
    min_similarity: float | None = None
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
        for name in ("must_include", "exclude"):
            ids = getattr(self, name)
            if isinstance(ids, str):
                raise InvalidInputError(f"{name} is a list of chunk ids, got one string: write [{ids!r}]")
            listed = tuple(ids) if isinstance(ids, Iterable) else (ids,)
            if not all(isinstance(id, str) for id in listed):
                raise InvalidInputError(f"{name} is a list of chunk ids, got {ids!r}")
            object.__setattr__(self, name, listed)
        if both := set(self.must_include) & set(self.exclude):
            raise ConfigError(f"chunk {min(both)!r} is both in must_include and in exclude")
        if not isinstance(self.source_field, str) or not self.source_field:
            raise ConfigError(f"source_field must be the name of a field, got {self.source_field!r}")
        self.limits([], [], self.must_include)  # its checks of k, budget, caps and shares

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

    def limits(self, costs: Sequence[float], sources: Sequence[Any], ids: Sequence[str]) -> Limits:
        """The limits of a selection from candidates of these ``ids``.

        ``costs`` and ``sources`` are one a candidate, where they are needed.
        """
        places: dict[str, int] = {}
        if self.must_include or self.exclude:
            places = {id: at for at, id in enumerate(ids)}
        for id in self.must_include:
            if id not in places:
                raise InvalidInputError(f"no chunk {id!r} among the candidates: check must_include")
        return Limits(
            k=self.k,
            token_budget=self.token_budget,
            costs=None if self.token_budget is None else costs,
            must_include=[places[id] for id in self.must_include],
            exclude=[places[id] for id in self.exclude if id in places],
            max_per_source=self.max_per_source,
            sources=None if self.max_per_source is None else sources,
            min_gain_share=self.min_gain_share,
            min_similarity=self.min_similarity,
        )


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
    method: Method | str
    sigma: float | Auto
    reranker: RerankerType
    triage_k: int
    where: Filter | str | None
    must_include: Sequence[str]
    exclude: Sequence[str]
    max_per_source: int | None
    source_field: str
    min_gain_share: float
    min_similarity: float | None
    sigma_min: float
