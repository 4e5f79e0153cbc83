"""Inspect one question: its candidates, the picks of several methods, and the reasons.

:func:`explore` finds candidates and selects from them exactly as :meth:`~dartboard.engine.Engine.search`
does, by nearest neighbours, MMR and Dartboard, and returns what a page needs to show the selection.
"""

import math
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import numpy as np

from dartboard.deadline import check
from dartboard.engine import Engine
from dartboard.errors import InvalidInputError
from dartboard.explain.layout import KIND, Layout, radial_layout
from dartboard.explain.search_session import SearchSession
from dartboard.explain.set_comparison import (
    PickedSet,
    Survival,
    overlap,
    picked_set,
    sigma_range,
    survival,
)
from dartboard.explain.trace import Step, Trace, trace
from dartboard.relevance import Relevance, assess
from dartboard.retrievers.candidates import Share
from dartboard.search_options import SearchKeywords, SearchOptions
from dartboard.selection import MMR, Dartboard, Method, Pool, TopK
from dartboard.selection.auto_sigma import auto_sigma
from dartboard.selection.kernels import Auto
from dartboard.selection.questions import check_weights
from dartboard.types import Chunk, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class SigmaUsed:
    """The σ in use and its origin, the automatic σ, and a range to try."""

    value: float
    source: str
    auto: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, source: str, auto: float) -> "SigmaUsed":
        """Add a range around both values."""
        low, high = sigma_range(auto)
        return cls(value=value, source=source, auto=auto, low=min(low, value), high=max(high, value))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Exploration:
    """Everything about one question. Arrays are in the order of the candidates (the retriever's order)."""

    query: str
    collection: str
    retriever: str
    model: str
    sigma: SigmaUsed
    k: int | None
    token_budget: int | None
    seconds: dict[str, float]
    candidates: list[Chunk]
    scores: list[float]
    shares: list[Mapping[str, Share]]
    tokens: list[int]
    distance: FloatArray
    probability: FloatArray
    layout: Layout | None
    sets: dict[str, PickedSet]
    trace: Trace
    sweep: Survival | None
    bound: float
    near_copies: int
    variant: str
    relevance: Relevance
    questions: list[dict[str, Any]] | None
    seen: list[int]

    def summary(self) -> dict[str, Any]:
        """The same facts as in a search's metadata, for statistics."""
        return {
            "seconds": dict(self.seconds),
            "candidates": len(self.candidates),
            "stands_for": [step.stands_for.tolist() for step in self.trace.steps],
        }

    def to_json(self) -> dict[str, Any]:
        """JSON data; every number is finite."""
        chosen = self.sets["dartboard"]
        return {
            "query": self.query,
            "questions": self.questions,
            "collection": self.collection,
            "retriever": self.retriever,
            "model": self.model,
            "reranker_type": self.variant,
            "sigma": asdict(self.sigma),
            "k": self.k,
            "token_budget": self.token_budget,
            "execution_time_ms": 1000.0 * self.seconds["total"],
            "seconds": dict(self.seconds),
            "relevance": dict(self.relevance),
            "candidates": [self._candidate(place) for place in range(len(self.candidates))],
            "layout": self.layout
            and {
                "stress": self.layout.stress,
                "kind": KIND,
                "radius_of_one": self.layout.radius_of_one,
                "length_of_one": self.layout.length_of_one,
            },
            "methods": {
                name: asdict(each) | {"parameters": plain(each.parameters), "matrix": each.matrix.tolist()}
                for name, each in self.sets.items()
            },
            "overlap": overlap(self.sets),
            "steps": [_step(step) for step in self.trace.steps],
            "covered_by": [None if pick < 0 else pick for pick in self.trace.covered_by.tolist()],
            "cover": self.trace.cover.tolist(),
            "seen": self.seen,
            "seen_cover": self.trace.seen_cover.tolist(),
            "pick_distances": chosen.matrix.tolist(),
            "sweep": self.sweep and asdict(self.sweep),
            "bound": self.bound,
            "near_copies": self.near_copies,
        }

    def _candidate(self, place: int) -> dict[str, Any]:
        chunk = self.candidates[place]
        x, y = (None, None) if self.layout is None else self.layout.points[place].tolist()
        shown = ((key, chunk.metadata.get(key)) for key in ("title", "source"))
        own = self.shares[place].get(self.retriever)
        return {
            "id": chunk.id,
            "text": chunk.text,
            **{key: value for key, value in shown if isinstance(value, str) and value},
            "metadata": plain(chunk.metadata),
            "similarity": 1.0 - 2.0 * float(self.distance[place]),
            "distance": float(self.distance[place]),
            "retriever_score": finite(self.scores[place]),
            "retriever_rank": place + 1 if own is None else own.rank,
            "shares": {
                name: {"rank": share.rank, "score": finite(share.score)}
                for name, share in self.shares[place].items()
                if name != self.retriever or len(self.shares[place]) == 1
            },
            "probability": float(self.probability[place]),
            "tokens": self.tokens[place],
            "x": x,
            "y": y,
        }


def explore(
    engine: Engine,
    query: str,
    options: SearchOptions | None = None,
    *,
    mmr_relevance: float = MMR().relevance_weight,
    layout: bool = True,
    sweep: bool = True,
    **changes: Unpack[SearchKeywords],
) -> Exploration:
    """Inspect one question.

    Args:
        engine: the index.
        query: the question.
        options: what a search would be asked for; ``seen`` has ids of chunks, and ``method`` is not used,
            because three methods are compared.
        mmr_relevance: the weight of relevance in MMR.
        layout: whether the map is made, which does not depend on σ or k.
        sweep: whether the picks along σ are made.
        changes: options that differ from ``options`` or from the defaults.

    Raises:
        ConfigError, InvalidInputError: as in :meth:`~dartboard.engine.Engine.search`.
        TypeError: an option does not exist; the message has the name that was probably meant.

    Example:
        ``explore(engine, "Why are our consumers falling behind?", k=3, where="year >= 2020")``
    """
    options = replace(SearchOptions.of(options, changes, "explore"), method=Dartboard.name)
    if options.seen_vectors is not None:
        raise InvalidInputError("explore takes ids of chunks in seen: it shows where they are")
    methods: tuple[Method, ...] = (TopK(), MMR(mmr_relevance), Dartboard())
    watch = _Watch()
    session = SearchSession(engine, query, options)
    watch.lap("gather")
    facts: dict[str, Any] = {
        "query": query,
        "collection": engine.name,
        "retriever": engine.retriever.name,
        "model": engine.model.name,
        "k": options.k,
        "token_budget": options.token_budget,
        "candidates": session.chunks,
        "scores": session.found.scores,
        "shares": [session.found.shares(chunk.id) for chunk in session.chunks],
        "relevance": assess(session.query_vectors, session.found.vectors, engine.similarity_levels),
        "questions": _questions(query, options),
        "seen": [place for place, chunk in enumerate(session.chunks) if chunk.id in set(options.seen_ids)],
    }
    sigma, offset = options.sigma, options.offset
    if not len(session):
        return _nothing(facts, session, sigma, methods, watch)
    limits = session.limits()
    automatic = session.pool_at("auto")
    pool = automatic if sigma == "auto" else session.pool_at(sigma)
    watch.lap("pool")
    selections = {}
    for method in methods:
        given = session.pool_at(sigma, method) if method.name == TopK.name else pool
        selections[method.name] = method.select(given, limits)
    watch.lap("select")
    check()
    found = trace(pool, limits, selections["dartboard"], offset=offset)
    watch.lap("trace")
    similarity = 1.0 - 2.0 * session.to_query
    cosines = 1.0 - 2.0 * session.distances
    sets = {
        name: picked_set(each.after(offset), session.chunks, cosines, similarity, session.tokens)
        for name, each in selections.items()
    }
    watch.lap("describe")
    placed = radial_layout(session.to_query, session.distances) if layout else None
    watch.lap("layout", layout)
    survived = survival(session.pool_at, limits, automatic.sigma.value, offset=offset) if sweep else None
    watch.lap("sweep", sweep)
    return Exploration(
        **facts,
        variant=session.selector.variant_of(session.options),
        sigma=SigmaUsed.of(
            pool.sigma.value, session.selector.sigma_source(pool.sigma, options), automatic.sigma.value
        ),
        tokens=session.tokens,
        distance=session.to_query,
        probability=_probability(limits.apply(pool), len(pool)),
        layout=placed,
        sets=sets,
        trace=found,
        sweep=survived,
        bound=selections["dartboard"].bound,
        near_copies=selections["dartboard"].near_copies,
        seconds=watch.seconds(session.found.seconds),
    )


def _questions(query: str, options: SearchOptions) -> list[dict[str, Any]] | None:
    """The query and those asked with it, with their weights; None where it is alone."""
    if not options.also:
        return None
    texts = [query, *options.also]
    weights = check_weights(options.weights, len(texts)).tolist()
    return [{"text": text, "weight": weight} for text, weight in zip(texts, weights, strict=True)]


def _probability(pool: Pool, size: int) -> FloatArray:
    """``(size,)`` P(t|q) of the candidates; those excluded, and removed near-duplicates, are not targets."""
    order, starts = pool.without_near_duplicates().by_row()
    weights = np.zeros(size)
    # A group counts as its most relevant member; with ``prefer``, another one stands for it.
    relevance = np.maximum.reduceat(pool.relevance[order], starts)
    with np.errstate(under="ignore"):
        weights[pool.positions[order[starts]]] = np.exp(relevance - relevance.max())
    weights /= weights.sum()
    return weights


def _nothing(
    facts: dict[str, Any],
    session: SearchSession,
    sigma: float | Auto,
    methods: tuple[Method, ...],
    watch: "_Watch",
) -> Exploration:
    """The result without candidates."""
    stand_in = auto_sigma(np.zeros((0, 0)), "scaled_cosine", model_sigma=session.engine.model.sigma)
    value, source = (stand_in.value, stand_in.source) if sigma == "auto" else (float(sigma), "given")
    none = np.zeros(0)
    empty = PickedSet(
        picks=[],
        pairwise_diversity=0.0,
        redundancy=0.0,
        mean_similarity=0.0,
        coverage=0.0,
        covered_before=0.0,
        serves=[] if session.options.also else None,
        question_coverage=[0.0] * len(session.query_vectors) if session.options.also else None,
        tokens=0,
        parameters={},
        matrix=np.zeros((0, 0)),
    )
    return Exploration(
        **facts,
        variant=session.selector.variant_of(session.options),
        sigma=SigmaUsed.of(value, source, stand_in.value),
        tokens=[],
        distance=none,
        probability=none,
        layout=None,
        sets={method.name: empty for method in methods},
        trace=Trace(steps=[], covered_by=np.zeros(0, dtype=np.intp), cover=none, seen_cover=none),
        sweep=None,
        bound=0.0,
        near_copies=0,
        seconds=watch.seconds(session.found.seconds),
    )


def _step(step: Step) -> dict[str, Any]:
    rival = step.runner_up
    return {
        "pick": step.pick,
        "gain": step.gain,
        "coverage": step.coverage,
        "uncovered": 1.0 - step.coverage,
        "criterion": step.criterion,
        "runner_up": rival and asdict(rival),
        "stands_for": step.stands_for.tolist(),
        "gains": [None if gain != gain else gain for gain in step.gains.tolist()],
    }


class _Watch:
    """Measures the time of each step."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, name: str, worth_telling: bool = True) -> None:
        now = time.perf_counter()
        if worth_telling:
            self._laps[name] = now - self._last
        self._last = now

    def seconds(self, inner: Any) -> dict[str, float]:
        return {**inner, **self._laps, "total": time.perf_counter() - self._started}


def finite(value: float) -> float | None:
    """The number, or None if it is not finite."""
    number = float(value)
    return number if math.isfinite(number) else None


def plain(value: Any) -> Any:
    """JSON data with the same content; other types become text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return str(value)
