"""Dartboard where a reranker is expected: an existing client changes its URL and nothing else.

One request model reads the bodies of text-embeddings-inference, Jina, vLLM, Cohere and Voyage; fields that
it does not know are ignored, as the originals do. ``texts`` means text-embeddings-inference. Of
``documents``, the path decides, then a field that only one client sends: ``/v2/rerank`` is Cohere's second
version, ``top_k`` or ``truncation`` is Voyage, and all others get an answer that holds what Jina's and
Cohere's first version have. All embed what was sent with the service's own model and let Dartboard order it.
"""

import math
import uuid
from collections.abc import Callable
from typing import Annotated, Any, Self

import orjson
from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.responses import Response

from dartboard.api.authentication import READ
from dartboard.api.endpoints.rerank_scores import Ranking, rank_texts
from dartboard.api.errors import Invalid
from dartboard.api.schemas import (
    Count,
    Listed,
    MethodName,
    RequestModel,
    Sigma,
    Text,
    at_most,
    check_length,
    json_body,
)
from dartboard.api.service import ServiceDep, in_thread

MOST_TEXTS = 500
"""Texts are encoded while the client waits, so fewer than ``/select`` takes as vectors. Measured: 60 ms of
processor time for 120 words with the default model."""


class RerankRequest(RequestModel):
    """A question with `texts`, or with `documents`; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    query: Text
    texts: Annotated[Listed[str], Field(min_length=1)] | None = None
    documents: Annotated[Listed[str | dict[str, Any]], Field(min_length=1)] | None = Field(
        None, description="Texts, or objects with a `text` (or the fields that `rank_fields` names)."
    )
    top_n: Count | None = None
    top_k: Count | None = Field(None, description="The same, for Voyage's clients.")
    return_documents: bool | None = Field(
        None, description="Whether results repeat their document; for Jina also where it is left out."
    )
    return_text: bool | None = Field(None, description="The same for `texts`.")
    raw_scores: bool | None = Field(None, description="With `texts`: scores are logits, ln(s / (1 - s)).")
    truncate: bool | None = Field(
        None, description="With `texts`: whether longer ones than the model reads are cut, or refused."
    )
    truncation: bool | None = Field(None, description="The same with `documents`, for Voyage's clients.")
    rank_fields: Annotated[Listed[str], Field(min_length=1)] | None = Field(
        None, description="The fields of objects that are read, in this order."
    )
    max_tokens_per_doc: Count | None = Field(None, description="Only so many tokens are read.")
    method: MethodName = "dartboard"
    sigma: Sigma = "auto"

    @model_validator(mode="after")
    def _one_list(self) -> Self:
        if (self.texts is None) == (self.documents is None):
            raise ValueError("give texts or documents: one of the two")
        return self

    def read_texts(self) -> list[str]:
        """What is ordered; of an object its ``text``, or the ``rank_fields`` that it has."""
        texts: list[str] = []
        for at, document in enumerate(self.texts or self.documents or ()):
            if isinstance(document, str):
                texts.append(document)
                continue
            given = [document[name] for name in self.rank_fields or ("text",) if name in document]
            if not self.rank_fields and not (given and isinstance(given[0], str)):
                raise Invalid("an object among the documents needs a text", field=f"documents.{at}.text")
            texts.append(
                "\n".join(one if isinstance(one, str) else orjson.dumps(one).decode() for one in given)
            )
        return texts


class Ranked(BaseModel):
    """One text in its place; `score` for text-embeddings-inference, else `relevance_score`."""

    index: int = Field(description="Its position in the request.")
    score: float | None = None
    relevance_score: float | None = Field(None, description="In (0, 1), strictly decreasing.")
    text: str | None = None
    document: dict[str, Any] | str | None = None
    dartboard: dict[str, Any] = Field(description="Gain, coverage, similarity, and what it stands for.")


class RerankResponse(BaseModel):
    """Results, best first: `results` for Jina and Cohere, `data` for Voyage."""

    model_config = ConfigDict(extra="allow")

    model: str | None = None
    results: list[Ranked] | None = None
    data: list[Ranked] | None = None
    dartboard: dict[str, Any] = Field(description="Model, method and σ that made the order.")


def _as_tei(ranking: Ranking, body: RerankRequest) -> Any:
    texts = body.texts or ()
    return [
        {
            "index": index,
            "score": math.log(score / (1.0 - score)) if body.raw_scores else score,
            **({"text": texts[index]} if body.return_text else {}),
            "dartboard": explained,
        }
        for index, score, explained in ranking.ranks
    ]


def _as_voyage(ranking: Ranking, body: RerankRequest) -> Any:
    texts = body.read_texts()
    data = [
        {
            "index": index,
            "relevance_score": score,
            **({"document": texts[index]} if body.return_documents else {}),
            "dartboard": explained,
        }
        for index, score, explained in ranking.ranks
    ]
    usage = {"total_tokens": ranking.tokens}
    model = ranking.made["model"]
    return {"object": "list", "data": data, "model": model, "usage": usage, "dartboard": ranking.made}


def _as_cohere(ranking: Ranking, body: RerankRequest, version: str = "2") -> dict[str, Any]:
    meta: dict[str, Any] = {
        "api_version": {"version": version},
        "billed_units": {"search_units": 1},
        "tokens": {"input_tokens": ranking.tokens},
    }
    if truncated := ranking.made["truncated"]:
        meta["warnings"] = [f"{truncated} of the documents are longer than the model reads and were cut"]
    results = []
    for index, score, explained in ranking.ranks:
        result: dict[str, Any] = {"index": index, "relevance_score": score, "dartboard": explained}
        if body.return_documents:
            document = (body.documents or ())[index]
            result["document"] = {"text": document} if isinstance(document, str) else document
        results.append(result)
    return {"id": str(uuid.uuid4()), "results": results, "meta": meta, "dartboard": ranking.made}


def _as_jina(ranking: Ranking, body: RerankRequest) -> Any:
    """Also what Cohere's first version has: its clients send nothing that tells them apart."""
    body = body.model_copy(update={"return_documents": body.return_documents is not False})
    own = {"model": ranking.made["model"], "usage": {"total_tokens": ranking.tokens}}
    return own | _as_cohere(ranking, body, "1")


_WRITERS: dict[str, Callable[[Ranking, RerankRequest], Any]] = {
    "tei": _as_tei,
    "cohere": _as_cohere,
    "voyage": _as_voyage,
    "jina": _as_jina,
}


def _shape(path: str, body: RerankRequest) -> str:
    if body.texts is not None:
        return "tei"
    if path.startswith("/v2/"):
        return "cohere"
    return "voyage" if {"truncation", "top_k"} & body.model_fields_set else "jina"


router = APIRouter(tags=["rerank"], dependencies=READ)


@router.post("/rerank", operation_id="rerank", response_model=list[Ranked] | RerankResponse)
@router.post("/v1/rerank", operation_id="rerank_v1", response_model=list[Ranked] | RerankResponse)
@router.post("/v2/rerank", operation_id="rerank_v2", response_model=list[Ranked] | RerankResponse)
@in_thread
def rerank(
    request: Request, service: ServiceDep, body: Annotated[RerankRequest, json_body(RerankRequest)]
) -> Response:
    """Order texts by what each adds, for clients of text-embeddings-inference, Jina, Cohere and Voyage.

    The answer has the shape that the client expects: by the path, then by fields that only one of them sends.
    """
    texts = body.read_texts()
    field = "documents" if body.texts is None else "texts"
    at_most(field, len(texts), min(MOST_TEXTS, service.settings.vectors), " texts")
    model = service.engines.model
    check_length(model, [body.query], service.settings, "query")
    ranking = rank_texts(
        model,
        body.query,
        texts,
        method=body.method,
        sigma=body.sigma,
        top_n=None if body.texts is not None else body.top_n or body.top_k,
        most_tokens=body.max_tokens_per_doc,
        refuse_long=body.truncate is False or body.truncation is False,
    )
    shape = _shape(request.url.path, body)
    return Response(orjson.dumps(_WRITERS[shape](ranking, body)), media_type="application/json")
