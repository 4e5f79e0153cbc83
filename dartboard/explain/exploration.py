"""Inspect one question: its candidates, the picks of several methods, and the reasons.

:func:`explore` finds candidates and selects from them exactly as :meth:`~dartboard.engine.Engine.search`
does, by nearest neighbours, MMR and Dartboard, and returns what a page needs to show the selection: plain
values under the names of the JSON, candidates by their place in the list.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Unpack

import numpy as np

from dartboard.config import RerankerType
from dartboard.deadline import check
from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.vectors import Scores
from dartboard.engine import Engine
from dartboard.errors import InvalidInputError
from dartboard.explain.layout import KIND, radial_layout
from dartboard.explain.picked_sets import PickedSet, overlap, picked_set
from dartboard.explain.trace import DESCRIBED, Step, trace
from dartboard.relevance import assess
from dartboard.retrievers.candidates import Candidates
from dartboard.retrievers.query import Query
from dartboard.search_options import SearchKeywords, SearchOptions
from dartboard.selection import MMR, Dartboard, Limits, Method, Pool, TopK
from dartboard.selection.kernel import Auto, choose_sigma, distances
from dartboard.selection.pool import check_weights
from dartboard.selection.select import with_pages_before
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA, FloatArray
from dartboard.utils import row_dots, unit_rows

SWEEP_STEPS = 25
REACH = 8.0
"""σ is tried from an eighth of the automatic value to eight times it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SigmaUsed:
    """The σ in use."""

    __pydantic_config__ = DESCRIBED

    value: float
    """As it was used."""
    source: str
    """Where it comes from: given, calibration, candidates, model, fallback, scores."""
    auto: float
    """What `auto` is for this question."""
    low: float
    """The smallest worth trying; the scale is logarithmic."""
    high: float
    """The largest worth trying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBy:
    """A candidate's place in one member of the retriever."""

    __pydantic_config__ = DESCRIBED

    rank: int
    """From 1."""
    score: float | None
    """That member's own score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploredCandidate:
    """A candidate."""

    __pydantic_config__ = DESCRIBED

    id: str
    """The passage's id."""
    text: str
    """The passage."""
    title: str | None
    """Its title, if it has one."""
    source: str | None
    """The document that it is from, if that is known."""
    metadata: dict[str, Any]
    """What is known of the passage."""
    similarity: float
    """Cosine to the question; of several, to the nearest."""
    distance: float
    """Scaled cosine distance to the question, (1 - cosine) / 2."""
    retriever_score: float | None
    """The retriever's own score; null for what it did not find."""
    retriever_rank: int
    """Its place in the retriever's list, from 1; the best one of several questions."""
    shares: dict[str, FoundBy]
    """Rank and score by each member of the retriever."""
    probability: float
    """P(t|q): how probably the question means this one; sums to 1."""
    tokens: int
    """Its length as a token budget counts it."""
    x: float | None
    """On the map, the question at 0, 0; null without one."""
    y: float | None
    """On the map, upwards; null without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapLayout:
    """How the map was made."""

    __pydantic_config__ = DESCRIBED

    stress: float
    """Kruskal's stress-1 of the lengths between candidates; 0 is perfect."""
    kind: str
    """The kind of map: radial MDS."""
    radius_of_one: float
    """How far from the middle a distance of 1 to the question is: exact."""
    length_of_one: float
    """How long a distance of 1 between candidates is, on the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One of several questions."""

    __pydantic_config__ = DESCRIBED

    text: str
    """The question."""
    weight: float
    """Its share in the whole, of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Dartboard's picks along σ."""

    __pydantic_config__ = DESCRIBED

    sigmas: list[float]
    """Rising, evenly spaced on a log scale; the automatic one is among them."""
    picks: list[list[int]]
    """Picks at each σ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """Everything about one question. Candidates are named by their place in the list."""

    __pydantic_config__ = DESCRIBED

    query: str
    """The question."""
    questions: list[Question] | None
    """With `also`: the query and the others."""
    collection: str
    """The collection that was asked."""
    retriever: str
    """Who found the candidates."""
    model: str
    """Who made the vectors."""
    reranker_type: RerankerType
    """The variant that was used."""
    sigma: SigmaUsed
    """σ."""
    k: int | None
    """The number of passages asked for."""
    token_budget: int | None
    """The budget asked for."""
    seconds: dict[str, float]
    """Where the time went."""
    relevance: dict[str, Any]
    """Whether anything relevant was found."""
    candidates: list[ExploredCandidate]
    """In the retriever's order."""
    layout: MapLayout | None
    """The map; null unless asked for."""
    methods: dict[str, PickedSet]
    """What top_k, mmr and dartboard picked."""
    overlap: dict[str, int]
    """Picks that two methods have in common, as `top_k|mmr`."""
    steps: list[Step]
    """Dartboard's picks, one by one."""
    covered_by: list[int | None]
    """For each candidate the pick that represents it best."""
    cover: list[float]
    """How well it does, 0 to 1."""
    seen: list[int]
    """The candidates in `seen`."""
    seen_cover: list[float]
    """For each candidate how well `seen`, and picks of earlier pages, cover it, 0 to 1."""
    pick_distances: list[list[float]]
    """Cosines of Dartboard's picks to one another."""
    sweep: Sweep | None
    """Picks along σ; null unless asked for."""
    near_copies: int
    """How many candidates were removed as near-duplicates of a more relevant one."""
    bound: float
    """Dartboard's set covers at least this share of what the best possible set would."""

    def to_json(self) -> dict[str, Any]:
        """JSON data; every number is finite."""
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """The same facts as in a search's metadata, for statistics."""
        stands_for = [step.stands_for for step in self.steps]
        return {"seconds": self.seconds, "candidates": len(self.candidates), "stands_for": stands_for}


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
        raise InvalidInputError("explore takes ids of chunks in seen: it shows where they are", field="seen")
    methods: tuple[Method, ...] = (TopK(), MMR(mmr_relevance), Dartboard())
    watch = _Watch()
    search = _Search(engine, query, options)
    watch.lap("gather")
    if not len(search.found):
        return _nothing(search, methods, watch)
    chunks = search.found.chunks()
    unit = unit_rows(np.stack([chunk.embedding for chunk in chunks]), np.float64)
    apart, to_query = distances(unit, unit, "scaled_cosine"), _to_query(unit, search.query_vectors)
    tokens = search.selector.count_tokens(chunks, options.tokenizer)
    limits = search.limits(tokens)
    automatic = search.pool_at("auto")
    pool = automatic if options.sigma == "auto" else search.pool_at(options.sigma)
    watch.lap("pool")
    selections = {}
    for method in methods:
        given = search.pool_at(options.sigma, method) if method.name == TopK.name else pool
        selections[method.name] = method.select(given, limits)
    chosen = selections[Dartboard.name]
    watch.lap("select")
    check()
    steps = trace(pool, limits, chosen, offset=options.offset)
    watch.lap("trace")
    sets = {
        name: picked_set(each.after(options.offset), 1.0 - 2.0 * apart, 1.0 - 2.0 * to_query, tokens)
        for name, each in selections.items()
    }
    watch.lap("describe")
    placed = radial_layout(to_query, apart) if layout else None
    watch.lap("layout", layout)
    swept = _sweep(search, limits, automatic.sigma.value) if sweep else None
    watch.lap("sweep", sweep)
    found = search.found
    probability = _probability(limits.apply(pool), len(pool))
    scores, shares = found.scores.tolist(), [found.shares(chunk.id) for chunk in chunks]
    return Exploration(
        **search.facts(),
        sigma=_sigma_used(
            pool.sigma.value, search.selector.sigma_source(pool.sigma, options), automatic.sigma.value
        ),
        seconds=watch.seconds(found.seconds),
        candidates=[
            ExploredCandidate(
                id=chunk.id,
                text=chunk.text,
                title=_words(chunk.metadata.get("title")),
                source=_words(chunk.metadata.get("source")),
                metadata=chunk.metadata,
                similarity=1.0 - 2.0 * float(to_query[place]),
                distance=float(to_query[place]),
                retriever_score=_finite(scores[place]),
                retriever_rank=own.rank if (own := shares[place].get(engine.retriever.name)) else place + 1,
                shares={
                    name: FoundBy(rank=share.rank, score=_finite(share.score))
                    for name, share in shares[place].items()
                    if name != engine.retriever.name or len(shares[place]) == 1
                },
                probability=float(probability[place]),
                tokens=tokens[place],
                x=None if placed is None else float(placed.points[place, 0]),
                y=None if placed is None else float(placed.points[place, 1]),
            )
            for place, chunk in enumerate(chunks)
        ],
        layout=None
        if placed is None
        else MapLayout(
            stress=placed.stress,
            kind=KIND,
            radius_of_one=placed.radius_of_one,
            length_of_one=placed.length_of_one,
        ),
        methods=sets,
        overlap=overlap(sets),
        steps=steps.steps,
        covered_by=[None if pick < 0 else pick for pick in steps.covered_by.tolist()],
        cover=steps.cover.tolist(),
        seen_cover=steps.seen_cover.tolist(),
        pick_distances=sets[Dartboard.name].matrix,
        sweep=swept,
        bound=chosen.bound,
        near_copies=chosen.near_copies,
    )


class _Search:
    """One query's search, kept open, so that the selection can be repeated with another σ.

    Candidates, selection methods and pools are made by the engine's own steps, in the same order as in
    :meth:`~dartboard.engine.Engine.search`, so the inspected search is the real one.
    """

    def __init__(self, engine: Engine, query: str, options: SearchOptions) -> None:
        self.engine, self.query, self.options = engine, query, options
        self.selector = engine.selector(options)
        if self.selector.cross_encoder is not None:
            self.selector.cross_encoder = CachedScorer(self.selector.cross_encoder)
        questions = [Query(text) for text in (query, *options.also)]
        where = engine.condition(options.where)
        with engine.collection.read_snapshot() as view:
            self.found: Candidates
            self.found, self.query_vectors = engine.find(view, questions, options, where)
            self.found.read_all()

    def pool_at(self, sigma: float | Auto, method: Method | None = None) -> Pool:
        """The pool of a search with this σ and method."""
        options = replace(self.options, sigma=sigma, method=method or Dartboard())
        scores = self.engine.ranking_scores(self.found, options)
        return self.selector.pool(self.query, self.query_vectors, self.found, options, scores=scores)

    def limits(self, tokens: Sequence[int]) -> Limits:
        """The limits of the options, those of earlier pages included."""
        options = self.options
        costs = None if options.token_budget is None else tokens
        return with_pages_before(
            self.selector.limits(self.found, options, costs), options.offset, Dartboard()
        )

    def facts(self) -> dict[str, Any]:
        """What is known before anything is selected."""
        options, seen = self.options, set(self.options.seen_ids)
        questions = None
        if options.also:
            texts = [self.query, *options.also]
            weights = check_weights(options.weights, len(texts)).tolist()
            questions = [Question(text=text, weight=one) for text, one in zip(texts, weights, strict=True)]
        return {
            "query": self.query,
            "questions": questions,
            "collection": self.engine.name,
            "retriever": self.engine.retriever.name,
            "model": self.engine.model.name,
            "reranker_type": self.selector.variant_of(options),
            "k": options.k,
            "token_budget": options.token_budget,
            "relevance": dict(assess(self.query_vectors, self.found.vectors, self.engine.similarity_levels)),
            "seen": [place for place, id in enumerate(self.found.ids) if id in seen],
        }


class CachedScorer:
    """A pair scorer with a cache: scores do not depend on σ."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self._known: dict[tuple[str, ...], Scores] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    @property
    def bounds(self) -> tuple[float, float]:
        """The wrapped scorer's bounds."""
        return self._scorer.bounds

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)``: the score of the query with each passage."""
        key = ("score", query, *passages)
        if key not in self._known:
            self._known[key] = self._scorer.score(query, passages)
        return self._known[key].copy()

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)``: the score of each passage with each."""
        key = ("matrix", *passages)
        if key not in self._known:
            self._known[key] = self._scorer.score_matrix(passages)
        return self._known[key].copy()


def sigma_range(centre: float) -> tuple[float, float]:
    """The range of σ around an automatic one."""
    return max(SMALLEST_SIGMA, centre / REACH), min(LARGEST_SIGMA, centre * REACH)


def _sigma_used(value: float, source: str, auto: float) -> SigmaUsed:
    low, high = sigma_range(auto)
    return SigmaUsed(value=value, source=source, auto=auto, low=min(low, value), high=max(high, value))


def _sweep(search: _Search, limits: Limits, centre: float) -> Sweep:
    """Picks at σ evenly spaced on a log scale; the one nearest to ``centre`` is replaced by it."""
    low, high = sigma_range(centre)
    sigmas = np.geomspace(low, high, SWEEP_STEPS)
    sigmas[np.abs(np.log(sigmas / centre)).argmin()] = centre
    picks = []
    for sigma in sigmas.tolist():
        check()
        selection = Dartboard().select(search.pool_at(sigma), limits).after(search.options.offset)
        picks.append(selection.indices.tolist())
    return Sweep(sigmas=sigmas.tolist(), picks=picks)


def _to_query(unit: FloatArray, query_vectors: FloatArray) -> FloatArray:
    """``(n,)`` scaled cosine distances to the query; of several questions, to the nearest."""
    # Not a matrix product: BLAS rounds a row by where it stands, and equal chunks must come out equal.
    cosine = np.max([row_dots(unit, one) for one in unit_rows(query_vectors, np.float64)], axis=0)
    away: FloatArray = np.maximum(0.5 - 0.5 * cosine, 0.0)
    return away


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


def _nothing(search: _Search, methods: tuple[Method, ...], watch: "_Watch") -> Exploration:
    """The result without candidates."""
    options = search.options
    model_sigma = search.engine.model.sigma
    guess = choose_sigma(options.sigma, np.zeros((0, 0)), "scaled_cosine", model_sigma=model_sigma)
    value, source = guess.value, guess.source
    empty = PickedSet(
        picks=[],
        pairwise_diversity=0.0,
        redundancy=0.0,
        mean_similarity=0.0,
        coverage=0.0,
        covered_before=0.0,
        serves=[] if options.also else None,
        question_coverage=[0.0] * len(search.query_vectors) if options.also else None,
        tokens=0,
        parameters={},
        matrix=[],
    )
    sets = {method.name: empty for method in methods}
    return Exploration(
        **search.facts(),
        sigma=_sigma_used(float(value), source, guess.value),
        seconds=watch.seconds(search.found.seconds),
        candidates=[],
        layout=None,
        methods=sets,
        overlap=overlap(sets),
        steps=[],
        covered_by=[],
        cover=[],
        seen_cover=[],
        pick_distances=[],
        sweep=None,
        bound=0.0,
        near_copies=0,
    )


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _words(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


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
