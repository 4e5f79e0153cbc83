"""The knobs that every door to a framework has, checked when they are set and not at the first question."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from dartboard.config import RERANKERS, DartboardConfig, RerankerType
from dartboard.engine.engine import DEFAULT_K, TRIAGE
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import Limits, Method
from dartboard.selection.kernels import Auto
from dartboard.selection.methods import method_of
from dartboard.stores import Filter, parse_filter

_NAMED_ELSEWHERE = {"top_n": "k", "top_k": "k"}


def check_names(settings: Any, owner: str) -> None:
    """An error for a setting that other rerankers call by another name, with the name that it has here."""
    for theirs, ours in _NAMED_ELSEWHERE.items():
        if isinstance(settings, dict) and theirs in settings:
            raise ConfigError(f"{theirs} is called {ours} here: {owner}({ours}={settings[theirs]!r})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """How much to pick, and how; ``k`` is 5 where neither it nor a ``token_budget`` is given."""

    k: int | None = None
    token_budget: int | None = None
    method: Method | str = "dartboard"
    sigma: float | Auto = "auto"
    max_per_source: int | None = None
    min_gain_share: float = 0.0
    min_similarity: float | None = None

    def __post_init__(self) -> None:
        if self.k is None and self.token_budget is None:
            object.__setattr__(self, "k", DEFAULT_K)
        Limits(
            k=self.k,
            token_budget=self.token_budget,
            costs=None if self.token_budget is None else (),
            max_per_source=self.max_per_source,
            sources=None if self.max_per_source is None else (),
            min_gain_share=self.min_gain_share,
            min_similarity=self.min_similarity,
        )
        DartboardConfig(sigma=self.sigma)
        if not hasattr(method_of(self.method), "select"):
            raise ConfigError(f"method must be a name or a selection method, got {self.method!r}")

    @classmethod
    def of(cls, owner: Any, **changes: Any) -> Self:
        """The knobs that an object has as attributes; those in ``changes`` are taken from there."""
        names = [field.name for field in fields(cls)]
        if unknown := sorted(set(changes) - set(names)):
            raise ConfigError(f"unknown knob {unknown[0]!r}: there are {', '.join(names)}")
        return cls(**{name: getattr(owner, name) for name in names if name not in changes}, **changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoosingKnobs(Knobs):
    """For documents that somebody else found; ``max_per_source`` counts by ``source_field``."""

    source_field: str = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchingKnobs(Knobs):
    """For an engine; as in :meth:`dartboard.engine.Engine.search`."""

    where: Filter | str | None = None
    triage_k: int = TRIAGE
    reranker: RerankerType = "cosine"
    must_include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made anew, and the bare form would look for the old one.
        Knobs.__post_init__(self)
        DartboardConfig(top_k=1, triage_k=self.triage_k)
        if self.reranker not in RERANKERS:
            raise ConfigError(f"reranker must be one of {', '.join(RERANKERS)}, got {self.reranker!r}")
        if isinstance(self.where, str):
            parse_filter(self.where)
        elif self.where is not None and not isinstance(self.where, Filter):
            raise InvalidInputError(
                f"where is text such as 'year >= 2020' or a Filter, got {type(self.where).__name__}"
            )
        for name in ("must_include", "exclude"):
            ids = getattr(self, name)
            if isinstance(ids, str) or not all(isinstance(id, str) for id in ids):
                raise InvalidInputError(f"{name} is a list of chunk ids, got {ids!r}")
            object.__setattr__(self, name, tuple(ids))
