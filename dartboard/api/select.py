"""``POST /select``: Dartboard over what the caller brings along; nothing is stored."""

import math
import time
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends
from pydantic import Field, TypeAdapter, ValidationError
from starlette.responses import Response

from dartboard.api.auth import reader
from dartboard.api.errors import Invalid
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.limits import at_most, check_sizes
from dartboard.api.schemas.select import SelectRequest, SelectResponse
from dartboard.api.service import Service, service_of
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import (
    Limits,
    Pool,
    Selection,
    from_distances,
    from_embeddings,
    from_log_probs,
    log_softmax,
)
from dartboard.selection.methods import method_of
from dartboard.types import FloatArray

router = APIRouter(
    prefix="/api/dartboard", tags=["retrieve"], route_class=JsonRoute, dependencies=[Depends(reader)]
)

_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
_NUMBERS = TypeAdapter(list[_Number])
_ROWS = TypeAdapter(list[list[_Number]])
_TOP_K = 5


@router.post("/select", operation_id="select", response_model=SelectResponse)
async def select(body: SelectRequest, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Select from candidates that you bring along: vectors, distances, log-probabilities or scores."""
    return await service.run(_select, service, body)


def _select(service: Service, body: SelectRequest) -> Response:
    started = time.perf_counter()
    settings = service.settings
    name, rows = body.matrix()
    if isinstance(rows, list):
        at_most(name, len(rows), settings.vectors, " candidates")
    at_most("k", body.k, settings.k)
    check_sizes(settings, token_budget=None if body.token_budget is None else math.ceil(body.token_budget))
    limits = Limits(
        k=_TOP_K if body.k is None and body.token_budget is None else body.k,
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
    return answer(_described(made, body, started))


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
        "similarity": [_finite(one) for one in made.similarity.tolist()] if asked else None,
        "stands_for": [stands.tolist() for stands in made.stands_for],
        "bound": _finite(made.bound),
        "sigma": _finite(made.sigma.value),
        "sigma_source": made.sigma.source,
        "near_copies": made.near_copies,
        "method": made.method,
        "execution_time_ms": round(1000 * (time.perf_counter() - started), 3),
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


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
