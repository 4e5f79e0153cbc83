"""``POST /select``: Dartboard over what the caller brings along; nothing is stored."""

import time
from typing import Annotated, Any, Literal, Self

import numpy as np
from fastapi import APIRouter
from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError, model_validator

from dartboard.api.authentication import READ
from dartboard.api.endpoints.retrieve import elapsed_ms
from dartboard.api.errors import Invalid
from dartboard.api.schemas import (
    Count,
    Id,
    Listed,
    MethodName,
    RequestModel,
    Sigma,
    Whole,
    at_most,
    json_body,
)
from dartboard.api.service import ServiceDep, in_thread
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

Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Numbers = Listed[Number]
Rows = list[Any]
"""Lists of numbers; checked in the thread, since they may be a million."""
Position = Annotated[Whole, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
_MATRICES = ("embeddings", "pairwise_distances", "pairwise_log_probs")
_GO_TOGETHER = {
    "query_distances": "pairwise_distances",
    "pairwise_distances": "query_distances",
    "query_log_probs": "pairwise_log_probs",
    "pairwise_log_probs": "query_log_probs",
    "query": "embeddings",
    "scores": "embeddings",
    "texts": "embeddings",
}


class SelectRequest(RequestModel):
    """Candidates, as one of: `embeddings` with `query` or `scores` or both; distances; log-probabilities."""

    embeddings: Rows | None = Field(None, description="One vector a candidate, of any model and length.")
    query: Numbers | None = Field(None, description="The question's vector.")
    scores: Numbers | None = Field(
        None,
        description="One a candidate, from any retriever (higher is better): with `embeddings`, what the "
        "query's side is weighed by, as softmax(scores / temperature).",
    )
    texts: Listed[str] | None = Field(
        None, description="One a candidate: near-duplicates among them are removed before selection."
    )
    temperature: Positive | Literal["auto"] = Field(
        "auto", description="Of the scores; `auto` is their standard deviation."
    )
    query_distances: Numbers | None = None
    pairwise_distances: Rows | None = Field(None, description="Between candidates, a square matrix.")
    query_log_probs: Numbers | None = Field(None, description="log P(t|q).")
    pairwise_log_probs: Rows | None = Field(None, description="log P(t|c) in row c and column t.")
    k: Count | None = Field(
        None, validation_alias=AliasChoices("k", "top_k"), description="5 where no budget is given."
    )
    token_budget: Positive | None = Field(None, description="What the picks may cost; needs `costs`.")
    costs: Numbers | None = Field(None, description="What each candidate costs, such as its tokens.")
    method: MethodName = "dartboard"
    sigma: Sigma = "auto"
    distance: Literal["scaled_cosine", "euclidean"] = Field(
        "scaled_cosine", description="What `sigma` is measured in."
    )
    max_per_source: Count | None = Field(None, description="At most so many of one of the `sources`.")
    sources: Listed[Id] | None = Field(None, description="Where each candidate comes from.")
    must_include: Listed[Position] = Field([], description="Positions that are picked first.")
    exclude: Listed[Position] = Field([], description="Positions that are left out.")
    min_gain_share: float = Field(0.0, ge=0, le=1)
    min_similarity: float | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        for name, other in _GO_TOGETHER.items():
            if name in given and other not in given:
                raise ValueError(f"{name} goes with {other}")
        if len([name for name in _MATRICES if name in given]) != 1:
            raise ValueError("give one of embeddings, pairwise_distances and pairwise_log_probs")
        if "embeddings" in given and not {"query", "scores"} & set(given):
            raise ValueError("embeddings need a query, scores, or both")
        return self


class SelectResponse(BaseModel):
    """Picks in order; lists run along them."""

    indices: list[int] = Field(description="Positions of the picks.")
    gains: list[float] = Field(description="What each adds: a share of what all candidates would cover.")
    coverage: list[float] = Field(description="What is covered after each pick.")
    similarity: list[float | None] | None = Field(description="To the question; null where none was given.")
    stands_for: list[list[int]] = Field(description="For each pick the candidates that it covers best.")
    bound: float | None = Field(description="At least this share of what the best possible set would cover.")
    sigma: float | None
    sigma_source: str | None
    near_copies: int = Field(description="Candidates removed as near-duplicates.")
    method: str
    execution_time_ms: float


router = APIRouter(prefix="/api/dartboard", tags=["retrieve"], dependencies=READ)
_ROWS = TypeAdapter(Listed[Numbers])


@router.post("/select", operation_id="select")
@in_thread
def select(service: ServiceDep, body: Annotated[SelectRequest, json_body(SelectRequest)]) -> SelectResponse:
    """Select from candidates that you bring along: vectors, distances, log-probabilities or scores."""
    started = time.perf_counter()
    settings = service.settings
    for name in _MATRICES:
        at_most(name, len(getattr(body, name) or ()), settings.vectors, " candidates")
    at_most("k", body.k, settings.k)
    at_most("token_budget", body.token_budget, settings.token_budget)
    limits = Limits(
        k=DEFAULT_K if body.k is None and body.token_budget is None else body.k,
        token_budget=body.token_budget,
        costs=body.costs,
        max_per_source=body.max_per_source,
        sources=body.sources,
        must_include=body.must_include,
        exclude=body.exclude,
        min_gain_share=body.min_gain_share,
        min_similarity=body.min_similarity,
    )
    made = method_of(body.method).select(_pool(body), limits)
    return _described(made, body, started)


def _pool(body: SelectRequest) -> Pool:
    if body.pairwise_distances is not None:
        return from_distances(
            np.array(body.query_distances),
            _matrix(body, "pairwise_distances"),
            sigma=body.sigma,
            distance=body.distance,
        )
    if body.pairwise_log_probs is not None:
        return from_log_probs(np.array(body.query_log_probs), _matrix(body, "pairwise_log_probs"))
    vectors = _matrix(body, "embeddings")
    for name in ("scores", "texts"):
        if (given := getattr(body, name)) is not None and len(given) != len(vectors):
            raise Invalid(f"{name} must be as many as embeddings", field=name)
    if body.scores is not None and body.method == "mmr":
        raise Invalid("mmr weighs similarities against each other and takes no scores", field="scores")
    query = vectors[int(np.argmax(body.scores or []))] if body.query is None else np.array(body.query)
    groups = None if body.texts is None else candidate_groups(vectors, body.texts)
    pool = from_embeddings(query, vectors, sigma=body.sigma, distance=body.distance, groups=groups)
    if body.scores is None:
        return pool
    return pool.reweighted(log_softmax(np.array(body.scores), body.temperature))


def _described(made: Selection, body: SelectRequest, started: float) -> SelectResponse:
    asked = body.embeddings is None or body.query is not None
    return SelectResponse(
        indices=made.indices.tolist(),
        gains=made.gains.tolist(),
        coverage=made.coverage.tolist(),
        similarity=made.similarity.tolist() if asked else None,
        stands_for=[stands.tolist() for stands in made.stands_for],
        bound=made.bound,
        sigma=made.sigma.value,
        sigma_source=made.sigma.source,
        near_copies=made.near_copies,
        method=made.method,
        execution_time_ms=elapsed_ms(started),
    )


def _matrix(body: SelectRequest, name: str) -> FloatArray:
    try:
        return np.array(_ROWS.validate_python(getattr(body, name)), dtype=np.float64)
    except ValidationError as error:
        where = ".".join(str(part) for part in (name, *error.errors(include_input=False)[0]["loc"]))
        raise Invalid(f"{where} should be a finite number (or a list of them)", field=where) from None
    except ValueError:
        raise Invalid(f"{name}: rows must be of one length", field=name) from None
