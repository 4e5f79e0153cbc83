"""``POST /explore``: one question from all sides, as the playground draws it."""

import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field, field_validator
from starlette.responses import Response

from dartboard.api.endpoints.retrieve import FoundRelevance, Share
from dartboard.api.errors import Invalid
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, elapsed_ms, json_response
from dartboard.api.schemas import Metadata, ResponseModel
from dartboard.api.search_request import CandidateRequest, K, Query, check_query
from dartboard.api.service import ServiceDep, in_worker
from dartboard.api.settings import ServiceSettings
from dartboard.config import RerankerType
from dartboard.explain.exploration import explore as look_at
from dartboard.search_options import SearchKeywords

MOST_CANDIDATES = 300
MOST_IN_ALL = 1200
"""Candidates of several questions together, and what was seen: the map takes the square of it."""


class ExploreRequest(CandidateRequest):
    """What to look at."""

    query: Query
    k: K = None
    triage_k: Annotated[int, Field(ge=1, le=MOST_CANDIDATES)] | None = Field(
        None, description="How many candidates to pick from; 100, or `k` where that is more.", examples=[100]
    )
    mmr_relevance: float = Field(
        0.7, ge=0, le=1, description="Weight of relevance in MMR; 1 is the retriever's order.", examples=[0.7]
    )
    layout: bool = Field(
        True, description="Whether to draw the map; it depends on neither σ nor k.", examples=[True]
    )
    sweep: bool = Field(True, description="Whether to select along σ as well.", examples=[True])

    @field_validator("k")
    @classmethod
    def _within_reach(cls, k: int | None) -> int | None:
        if k is not None and k > MOST_CANDIDATES:
            raise ValueError(
                f"should be at most {MOST_CANDIDATES}: there are no more candidates to pick from"
            )
        return k

    def search_keywords(self, settings: ServiceSettings) -> SearchKeywords:
        """As for any search, with as many candidates of several questions as the map takes."""
        options = super().search_keywords(settings)
        questions, seen = 1 + len(self.also), len(self.seen)
        room = (MOST_IN_ALL - seen) // questions
        if max(options["triage_k"] if self.triage_k else 0, options.get("k") or 0) > room:
            field = "seen" if seen > MOST_IN_ALL - MOST_CANDIDATES else "triage_k"
            raise Invalid(
                f"{field}: {questions} questions of so many candidates each, and what was seen, are limited "
                f"to {MOST_IN_ALL} here: ask for fewer",
                field=field,
            )
        options["triage_k"] = min(options["triage_k"], room)
        return options


class SigmaRange(ResponseModel):
    """σ, and where it may go."""

    value: float = Field(description="As it was used.", examples=[0.087])
    source: str = Field(
        description="Where it comes from: given, calibration, candidates, model, fallback, scores.",
        examples=["candidates"],
    )
    auto: float = Field(description="What `auto` is for this question.", examples=[0.087])
    low: float = Field(description="The smallest worth trying; the scale is logarithmic.", examples=[0.011])
    high: float = Field(description="The largest worth trying.", examples=[0.7])


class ExploredCandidate(ResponseModel):
    """A candidate; its index is its place in the list."""

    id: str = Field(description="The passage's id.", examples=["slow-01"])
    text: str = Field(description="The passage.", examples=["Consumers fall behind, as a rule, because …"])
    title: str | None = Field(None, description="Its title, where it has one.", examples=["Slow consumers"])
    source: str | None = Field(
        None, description="Where it is from, where that is known.", examples=["faq/consumers.md"]
    )
    metadata: Metadata = Field(
        description="What is known of the passage.", examples=[{"theme": "slow handlers"}]
    )
    similarity: float = Field(
        description="Cosine to the question; of several, to the nearest.", examples=[0.72]
    )
    distance: float = Field(
        description="Scaled cosine distance to the question, (1 - cosine) / 2.", examples=[0.14]
    )
    retriever_score: float | None = Field(description="The retriever's own score.", examples=[0.93])
    retriever_rank: int = Field(
        description="Its place in the retriever's list, from 1; the best one of several questions.",
        examples=[1],
    )
    shares: dict[str, Share] = Field(
        description="What each member of the retriever said.",
        examples=[{"dense": {"rank": 1, "score": 0.72}, "bm25": {"rank": 2, "score": 9.1}}],
    )
    probability: float = Field(
        description="P(t|q): how probably the question means this one; sums to 1.", examples=[0.21]
    )
    tokens: int = Field(description="Its length as a token budget counts it.", examples=[84])
    x: float | None = Field(description="On the map, the question at 0, 0; null without one.", examples=[0.2])
    y: float | None = Field(description="On the map, upwards; null without one.", examples=[0.4])


class MapLayout(ResponseModel):
    """How the map was made."""

    stress: float = Field(
        description="Kruskal's stress-1 of the lengths between candidates; 0 is perfect.", examples=[0.35]
    )
    kind: Literal["radial MDS"] = Field(description="What the map is.", examples=["radial MDS"])
    radius_of_one: float = Field(
        description="How far from the middle a distance of 1 to the question is: exact.", examples=[2.4]
    )
    length_of_one: float = Field(
        description="How long a distance of 1 between candidates is, on the whole.", examples=[3.1]
    )


class ExploredSet(ResponseModel):
    """What one method picked, by index, in order."""

    picks: list[int] = Field(description="Candidates by index.", examples=[[0, 4, 9]])
    pairwise_diversity: float = Field(description="1 - mean cosine over pairs of picks.", examples=[0.41])
    redundancy: float = Field(
        description="Mean over picks of the cosine to the nearest other pick.", examples=[0.66]
    )
    mean_similarity: float = Field(description="Mean cosine of the picks to the question.", examples=[0.6])
    coverage: float = Field(
        description="What the set covers by Dartboard's objective, of what all candidates cover.",
        examples=[0.87],
    )
    covered_before: float = Field(
        description="What of it was covered before the first pick, by `seen` and by earlier pages.",
        examples=[0.0],
    )
    serves: list[int] | None = Field(
        description="With `also`: the question that each pick serves most, a place in `questions`.",
        examples=[[0, 1, 0]],
    )
    question_coverage: list[float] | None = Field(
        description="With `also`: how much of what each question may be after is covered, of 1.",
        examples=[[0.8, 0.9]],
    )
    tokens: int = Field(description="The length of all picks.", examples=[412])
    parameters: dict[str, Any] = Field(
        description="The method's knobs.", examples=[{"relevance_weight": 0.7}]
    )
    matrix: list[list[float]] = Field(
        description="Cosines of the picks to one another.", examples=[[[1.0, 0.4], [0.4, 1.0]]]
    )


class ExploredQuestion(ResponseModel):
    """One of several questions."""

    text: str = Field(description="The question.", examples=["How do I add consumers?"])
    weight: float = Field(description="Its share in the whole, of 1.", examples=[0.5])


class ExploredRunnerUp(ResponseModel):
    """Who came second."""

    index: int = Field(description="The candidate.", examples=[7])
    gain: float = Field(description="What it would have added.", examples=[0.05])
    behind: float | None = Field(
        description="The share of the pick's value by which it lost: 0 is a tie, 1 is nothing at all.",
        examples=[0.3],
    )


class ExploredStep(ResponseModel):
    """One pick of Dartboard."""

    pick: int = Field(description="The candidate.", examples=[0])
    gain: float = Field(description="What it adds, as a share of what all candidates cover.", examples=[0.41])
    coverage: float = Field(description="What is covered with it.", examples=[0.41])
    uncovered: float = Field(description="What is left.", examples=[0.59])
    criterion: Literal["probability", "gain", "gain_per_token", "required"] = Field(
        description="By what it was the best.", examples=["gain"]
    )
    runner_up: ExploredRunnerUp | None = Field(
        description="The best that lost, copies of the pick aside; null where nobody else adds anything.",
        examples=[{"index": 7, "gain": 0.05, "behind": 0.3}],
    )
    stands_for: list[int] = Field(
        description="Candidates that it covers at least by half and better than other picks.",
        examples=[[0, 3]],
    )
    gains: list[float | None] = Field(
        description="What each candidate would have added here; null for those picked or seen before.",
        examples=[[0.41, 0.39, 0.02]],
    )


class SigmaSweep(ResponseModel):
    """Dartboard's picks along σ."""

    sigmas: list[float] = Field(description="Rising, on a log scale.", examples=[[0.04, 0.08, 0.16]])
    picks: list[list[int]] = Field(description="Picks at each σ.", examples=[[[0, 1], [0, 4], [0, 9]]])


class Overlap(ResponseModel):
    """How many picks two methods have in common."""

    top_k_mmr: int = Field(alias="top_k|mmr", description="Top-k and MMR.", examples=[2])
    top_k_dartboard: int = Field(alias="top_k|dartboard", description="Top-k and Dartboard.", examples=[2])
    mmr_dartboard: int = Field(alias="mmr|dartboard", description="MMR and Dartboard.", examples=[3])


class ExploreResponse(ResponseModel):
    """Everything about one question. Candidates are named by their index."""

    query: str = Field(description="The question.", examples=["Why are our consumers falling behind?"])
    questions: list[ExploredQuestion] | None = Field(
        description="With `also`: `query` and the others.",
        examples=[[{"text": "Why are our consumers falling behind?", "weight": 0.5}]],
    )
    collection: str = Field(description="The collection that was asked.", examples=["demo"])
    retriever: str = Field(description="Who found the candidates.", examples=["hybrid"])
    model: str = Field(description="Who made the vectors.", examples=["all-MiniLM-L6-v2"])
    reranker_type: RerankerType = Field(description="What was really used.", examples=["cosine"])
    sigma: SigmaRange = Field(description="σ.")
    k: int | None = Field(description="The number of passages asked for.", examples=[5])
    token_budget: int | None = Field(description="The budget asked for.", examples=[None])
    execution_time_ms: float = Field(description="Milliseconds in the service.", examples=[31.0])
    seconds: dict[str, float] = Field(description="Where the time went.", examples=[{"search": 0.004}])
    relevance: FoundRelevance = Field(description="Whether anything relevant was found.")
    candidates: list[ExploredCandidate] = Field(description="In the retriever's order.")
    layout: MapLayout | None = Field(description="The map; null unless asked for.", examples=[None])
    methods: dict[Literal["top_k", "mmr", "dartboard"], ExploredSet] = Field(
        description="What each method picked.", examples=[{}]
    )
    overlap: Overlap = Field(description="Picks in common.")
    steps: list[ExploredStep] = Field(description="Dartboard's picks, one by one.")
    covered_by: list[int | None] = Field(
        description="For each candidate the pick that stands in for it best.", examples=[[0, 0, 4]]
    )
    cover: list[float] = Field(description="How well it does, 0 to 1.", examples=[[1.0, 0.8, 0.3]])
    seen: list[int] = Field(description="The candidates in `seen`.", examples=[[2]])
    seen_cover: list[float] = Field(
        description="For each candidate how well `seen`, and picks of earlier pages, cover it, 0 to 1.",
        examples=[[0.0, 0.2, 1.0]],
    )
    pick_distances: list[list[float]] = Field(
        description="Cosines of Dartboard's picks to one another.", examples=[[[1.0, 0.4], [0.4, 1.0]]]
    )
    sweep: SigmaSweep | None = Field(description="Picks along σ; null unless asked for.", examples=[None])
    near_copies: int = Field(
        description="How many candidates were removed as near-duplicates of a more relevant one.",
        examples=[0],
    )
    bound: float = Field(
        description="Dartboard's set covers at least this share of what the best possible set would.",
        examples=[0.93],
    )


router = APIRouter(prefix="/api/dartboard", tags=["explore"], route_class=JsonRoute, dependencies=READ)


@router.post("/explore", operation_id="explore", response_model=ExploreResponse)
@in_worker
def explore(body: ExploreRequest, service: ServiceDep) -> Response:
    """Look at one question: candidates, three methods side by side, and why Dartboard picks what it picks.

    The picks are those of `/retrieve`. The map and the sweep take the most time and are left out on request;
    the map stays the same while σ and k change.
    """
    started = time.perf_counter()
    options = body.search_options(service.settings)
    engine = service.engines.get(body.collection)
    check_query(engine.model, body.query, service.settings, body.also)
    found = look_at(
        engine,
        body.query,
        options,
        mmr_relevance=body.mmr_relevance,
        layout=body.layout,
        sweep=body.sweep,
    )
    service.metrics.observe_search(found.summary())
    content = found.to_json()
    content["execution_time_ms"] = elapsed_ms(started)
    return json_response(content)
