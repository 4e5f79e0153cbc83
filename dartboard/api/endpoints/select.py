"""``POST /select``: Dartboard over what the caller brings along; nothing is stored."""

import time
from typing import Annotated, Any, Literal, Self

import numpy as np
from fastapi import APIRouter
from pydantic import Field, SkipValidation, TypeAdapter, ValidationError, model_validator
from starlette.responses import Response

from dartboard.api.errors import Invalid
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, elapsed_ms, json_response
from dartboard.api.schemas import Id, Listed, RequestModel, ResponseModel, Sigma
from dartboard.api.search_request import Count, K, MethodName, MinGainShare, at_most
from dartboard.api.service import ServiceDep, in_worker
from dartboard.near_duplicates import candidate_groups
from dartboard.search_options import DEFAULT_K
from dartboard.selection import (
    Limits,
    Pool,
    Selection,
    from_distances,
    from_embeddings,
    from_log_probs,
    log_softmax,
)
from dartboard.selection.select import method_of
from dartboard.types import FloatArray

Numbers = SkipValidation[list[float]]
Rows = SkipValidation[list[list[float]]]
"""Checked by the worker, not by the event loop: they may be a million numbers."""

Position = Annotated[int, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]

_PAIRS = (
    ("query_distances", "pairwise_distances"),
    ("query_log_probs", "pairwise_log_probs"),
)
_EXAMPLE = [[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]]


class SelectRequest(RequestModel):
    """Candidates, as one of: `embeddings` with `query` or `scores` or both; distances; log-probabilities."""

    embeddings: Rows | None = Field(
        None, description="One vector a candidate, of any model and length.", examples=[_EXAMPLE]
    )
    query: Numbers | None = Field(
        None, description="The question's vector, as long as the candidates'.", examples=[[1.0, 0.4]]
    )
    scores: Numbers | None = Field(
        None,
        description="One a candidate, from any retriever (higher is better): with `embeddings`, what the "
        "query's side is weighed by, as softmax(scores / temperature).",
        examples=[[0.9, 0.8, 0.4]],
    )
    texts: Listed[str] | None = Field(
        None,
        description="One a candidate, with `embeddings`: near-duplicates among them are removed before "
        "selection.",
        examples=[["Opened in 1927.", "It was opened in 1927.", "Closed in 1931."]],
    )
    temperature: Positive | Literal["auto"] = Field(
        "auto", description="Of the scores; `auto` is their standard deviation.", examples=["auto"]
    )
    query_distances: Numbers | None = Field(
        None,
        description="Distances to the question, with `pairwise_distances`.",
        examples=[[0.05, 0.06, 0.2]],
    )
    pairwise_distances: Rows | None = Field(
        None,
        description="Distances between candidates, a square matrix.",
        examples=[[[0.0, 0.01, 0.3], [0.01, 0.0, 0.3], [0.3, 0.3, 0.0]]],
    )
    query_log_probs: Numbers | None = Field(
        None, description="log P(t|q), with `pairwise_log_probs`.", examples=[[-0.5, -0.6, -2.0]]
    )
    pairwise_log_probs: Rows | None = Field(
        None,
        description="log P(t|c) in row c and column t, a square matrix.",
        examples=[[[0.0, -0.1, -3.0], [-0.1, 0.0, -3.0], [-3.0, -3.0, 0.0]]],
    )
    k: K = None
    token_budget: Positive | None = Field(
        None, description="What the picks may cost together; needs `costs`.", examples=[1000]
    )
    costs: Numbers | None = Field(
        None, description="What each candidate costs, such as its tokens.", examples=[[310, 290, 120]]
    )
    method: MethodName = "dartboard"
    sigma: Sigma = "auto"
    distance: Literal["scaled_cosine", "euclidean"] = Field(
        "scaled_cosine", description="What `sigma` is measured in.", examples=["scaled_cosine"]
    )
    max_per_source: Count | None = Field(
        None, description="At most so many of one source; needs `sources`.", examples=[1]
    )
    sources: Listed[Id] | None = Field(
        None, description="Where each candidate comes from.", examples=[["a", "a", "b"]]
    )
    must_include: Listed[Position] = Field([], description="Positions that are picked first.", examples=[[2]])
    exclude: Listed[Position] = Field([], description="Positions that are left out.", examples=[[1]])
    min_gain_share: MinGainShare = 0.0
    min_similarity: float | None = Field(
        None, description="Leave out candidates less similar to the question.", examples=[0.1]
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [pair for pair in _PAIRS if self._any(*pair)]
        for pair in kinds:
            if not all(getattr(self, name) is not None for name in pair):
                raise ValueError(f"{pair[0]} and {pair[1]} go together")
        if self.embeddings is None and self._any("query", "scores"):
            raise ValueError("query and scores go with embeddings")
        if self.embeddings is None and self.texts is not None:
            raise ValueError("texts go with embeddings")
        if len(kinds) + (self.embeddings is not None) != 1:
            raise ValueError("give one of embeddings, pairwise_distances and pairwise_log_probs")
        if self.embeddings is not None and not self._any("query", "scores"):
            raise ValueError("embeddings need a query, scores, or both")
        return self

    def _any(self, *names: str) -> bool:
        return any(getattr(self, name) is not None for name in names)

    def matrix(self) -> tuple[str, Any]:
        """The field that has a row a candidate, and its value."""
        names = ("embeddings", "pairwise_distances", "pairwise_log_probs")
        name = next(name for name in names if getattr(self, name) is not None)
        return name, getattr(self, name)


class SelectResponse(ResponseModel):
    """Picks in order; lists run along them."""

    indices: list[int] = Field(description="Positions of the picks.", examples=[[1, 2]])
    gains: list[float] = Field(
        description="What each adds: a share of what all candidates would cover.", examples=[[0.71, 0.21]]
    )
    coverage: list[float] = Field(description="What is covered after each pick.", examples=[[0.71, 0.92]])
    similarity: list[float | None] | None = Field(
        description="Similarity of each pick to the question; null where no question was given.",
        examples=[[0.96, 0.75]],
    )
    stands_for: list[list[int]] = Field(
        description="For each pick the candidates that it covers best.", examples=[[[0, 1], [2]]]
    )
    bound: float | None = Field(
        description="The picks cover at least this share of what the best possible set would.",
        examples=[0.97],
    )
    sigma: float | None = Field(description="σ as it was used; null where there is none.", examples=[0.087])
    sigma_source: str | None = Field(description="Where it comes from.", examples=["candidates"])
    near_copies: int = Field(
        description="How many candidates were removed as near-duplicates of a more relevant one.",
        examples=[0],
    )
    method: str = Field(description="Who picked.", examples=["dartboard"])
    execution_time_ms: float = Field(description="Milliseconds in the service.", examples=[0.9])


router = APIRouter(prefix="/api/dartboard", tags=["retrieve"], route_class=JsonRoute, dependencies=READ)

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_NUMBERS = TypeAdapter(Listed[_Number])
_ROWS = TypeAdapter(Listed[Listed[_Number]])


@router.post("/select", operation_id="select", response_model=SelectResponse)
@in_worker
def select(body: SelectRequest, service: ServiceDep) -> Response:
    """Select from candidates that you bring along: vectors, distances, log-probabilities or scores."""
    started = time.perf_counter()
    settings = service.settings
    name, rows = body.matrix()
    if isinstance(rows, list):
        at_most(name, len(rows), settings.vectors, " candidates")
    at_most("k", body.k, settings.k)
    at_most("token_budget", body.token_budget, settings.token_budget)
    limits = Limits(
        k=DEFAULT_K if body.k is None and body.token_budget is None else body.k,
        token_budget=body.token_budget,
        costs=_vector(body, "costs"),
        max_per_source=body.max_per_source,
        sources=body.sources,
        must_include=body.must_include,
        exclude=body.exclude,
        min_gain_share=body.min_gain_share,
        min_similarity=body.min_similarity,
    )
    made = method_of(body.method).select(_pool(body), limits)
    return json_response(_described(made, body, started))


def _pool(body: SelectRequest) -> Pool:
    if body.pairwise_distances is not None:
        return from_distances(
            _vector(body, "query_distances"),
            _matrix(body, "pairwise_distances"),
            sigma=body.sigma,
            distance=body.distance,
        )
    if body.pairwise_log_probs is not None:
        return from_log_probs(_vector(body, "query_log_probs"), _matrix(body, "pairwise_log_probs"))
    vectors, scores = _matrix(body, "embeddings"), _vector(body, "scores")
    query = _vector(body, "query")
    if scores is not None and len(scores) != len(vectors):
        raise Invalid("scores must be as many as embeddings", field="scores")
    if scores is not None and body.method == "mmr":
        raise Invalid("mmr weighs similarities against each other and takes no scores", field="scores")
    if query is None:
        query = vectors[int(np.argmax(scores))]
    if body.texts is not None and len(body.texts) != len(vectors):
        raise Invalid("texts must be as many as embeddings", field="texts")
    groups = None if body.texts is None else candidate_groups(vectors, body.texts)
    pool = from_embeddings(query, vectors, sigma=body.sigma, distance=body.distance, groups=groups)
    return pool if scores is None else pool.reweighted(log_softmax(scores, body.temperature))


def _described(made: Selection, body: SelectRequest, started: float) -> dict[str, Any]:
    asked = body.embeddings is None or body.query is not None
    return {
        "indices": made.indices.tolist(),
        "gains": made.gains.tolist(),
        "coverage": made.coverage.tolist(),
        "similarity": made.similarity.tolist() if asked else None,
        "stands_for": [stands.tolist() for stands in made.stands_for],
        "bound": made.bound,
        "sigma": made.sigma.value,
        "sigma_source": made.sigma.source,
        "near_copies": made.near_copies,
        "method": made.method,
        "execution_time_ms": elapsed_ms(started),
    }


def _vector(body: SelectRequest, name: str) -> Any:
    """Numbers as ``(n,)``; None where they were not given."""
    given = getattr(body, name)
    return None if given is None else _checked(_NUMBERS, given, name)


def _matrix(body: SelectRequest, name: str) -> FloatArray:
    return _checked(_ROWS, getattr(body, name), name)


def _checked(adapter: TypeAdapter[Any], given: Any, name: str) -> FloatArray:
    try:
        return np.array(adapter.validate_python(given), dtype=np.float64)
    except ValidationError as error:
        where = ".".join(str(part) for part in (name, *error.errors(include_input=False)[0]["loc"]))
        raise Invalid(f"{where} should be a finite number (or a list of them)", field=where) from None
    except ValueError:
        raise Invalid(f"{name}: rows must be of one length", field=name) from None
