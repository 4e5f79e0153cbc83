"""Dartboard where a reranker is expected: an existing client changes its URL and nothing else.

Requests are told apart by their bodies: ``texts`` is text-embeddings-inference, ``documents`` is Jina (and
vLLM), and ``rank_fields`` or ``max_chunks_per_doc`` beside them is Cohere's first version; ``/v2/rerank`` is
its second.
All embed what was sent with the service's own model and let Dartboard order it.
"""

import math
import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import orjson
from fastapi import APIRouter
from pydantic import ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from starlette.responses import Response

from dartboard.api.endpoints.rerank_scores import Ranking, rank_texts
from dartboard.api.errors import Invalid
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, json_response
from dartboard.api.schemas import Listed, RequestModel, ResponseModel, Sigma, Text
from dartboard.api.search_request import Count, MethodName, at_most, check_query
from dartboard.api.service import Service, ServiceDep, in_worker

MOST_TEXTS = 500
"""Texts are encoded while the client waits, so fewer than ``/select`` takes as vectors. Measured: 60 ms of
processor time for 120 words with the default model."""
_TEXTS = ["Consumers fall behind when messages take long to handle.", "Add partitions."]
_DOCUMENTS: list[Any] = [_TEXTS[0], {"text": _TEXTS[1]}]
_WITH_TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": True,
}
Document = str | dict[str, Any]


class RerankOptions(RequestModel):
    """What every request has: the question, and how Dartboard selects."""

    query: Text = Field(description="The question.", examples=["Why do consumers fall behind?"])
    method: MethodName = "dartboard"
    sigma: Sigma = "auto"


class TeiRequest(RerankOptions):
    """A question and texts, as text-embeddings-inference takes them."""

    texts: Listed[str] = Field(min_length=1, description="The texts to order.", examples=[_TEXTS])
    raw_scores: bool | None = Field(
        None,
        description="Whether scores are logits, ln(s / (1 - s)), instead of numbers in (0, 1).",
        examples=[False],
    )
    return_text: bool | None = Field(None, description="Whether results repeat their text.", examples=[True])
    truncate: bool | None = Field(
        None,
        description="Whether texts longer than the model reads are cut (as when it is left out), or refused.",
        examples=[True],
    )
    truncation_direction: Literal["right", "Right"] | None = Field(
        None, description="Texts are cut at their end.", examples=["right"]
    )


class DocumentsRequest(RerankOptions):
    """What requests with documents have in common."""

    model: str | None = Field(
        None,
        description="Taken, and not used: the service's own model orders the documents.",
        examples=["rerank-v3.5"],
    )
    documents: Annotated[
        Listed[str | Annotated[dict[str, Any], WithJsonSchema(_WITH_TEXT)]], Field(min_length=1)
    ] = Field(description="Texts, or objects with a `text`.", examples=[_DOCUMENTS])
    top_n: Count | None = Field(None, description="How many results; all where it is left out.", examples=[2])
    return_documents: bool | None = Field(
        None, description="Whether results repeat their document; not where it is left out.", examples=[False]
    )


class JinaRequest(DocumentsRequest):
    """A question and documents, as Jina takes them."""

    return_documents: bool | None = Field(
        None,
        description="Whether results repeat their document; they do where it is left out.",
        examples=[True],
    )


class CohereV1Request(DocumentsRequest):
    """A question and documents, as Cohere's first version takes them."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["rank_fields"]}, {"required": ["max_chunks_per_doc"]}]}
    )

    documents: Annotated[Listed[Document], Field(min_length=1)] = Field(
        description="Texts, or objects with the fields that `rank_fields` names, or with a `text`.",
        examples=[_DOCUMENTS],
    )
    rank_fields: Listed[str] | None = Field(
        None,
        min_length=1,
        description="The fields of objects that are read, in this order.",
        examples=[["text"]],
    )
    max_chunks_per_doc: Count | None = Field(
        None, description="Taken, and not used: the beginning of a document is read.", examples=[1]
    )


class CohereV2Request(DocumentsRequest):
    """A question and documents, as Cohere's second version takes them."""

    max_tokens_per_doc: Count | None = Field(
        None, description="Only so many tokens of a document are read.", examples=[256]
    )
    priority: int | None = Field(
        None, description="Taken, and not used: requests wait their turn.", examples=[0]
    )


class Explained(ResponseModel):
    """Why a text stands where it does."""

    gain: float = Field(
        description="What it adds to those before it: a share of what all texts cover.", examples=[0.62]
    )
    coverage: float = Field(description="What is covered up to here.", examples=[0.62])
    similarity: float = Field(description="Cosine to the question.", examples=[0.71])
    stands_for: list[int] = Field(
        description="The texts that it covers best, itself among them.", examples=[[0, 2]]
    )


class Made(ResponseModel):
    """What made the order."""

    model: str = Field(
        description="The model that was used; a request cannot choose it.", examples=["all-MiniLM-L6-v2"]
    )
    method: str = Field(description="Who picked.", examples=["dartboard"])
    sigma: float | None = Field(description="σ as it was used; null where there was none.", examples=[0.09])
    truncated: int = Field(
        description="Texts that are longer than the model reads; the rest of them did not count.",
        examples=[0],
    )


class TeiRank(ResponseModel):
    """One text in its place."""

    index: int = Field(description="Its position in the request.", examples=[0])
    score: float = Field(description="Strictly decreasing along the results.", examples=[0.71])
    text: str | None = Field(None, description="With `return_text`.", examples=[_TEXTS[0]])
    dartboard: Explained = Field(description="Why it stands here.")


class DocumentRank(ResponseModel):
    """One document in its place."""

    index: int = Field(description="Its position in the request.", examples=[0])
    relevance_score: float = Field(
        description="In (0, 1), strictly decreasing along the results.", examples=[0.71]
    )
    document: dict[str, Any] | None = Field(
        None, description="With `return_documents`.", examples=[{"text": _TEXTS[0]}]
    )
    dartboard: Explained = Field(description="Why it stands here.")


class Usage(ResponseModel):
    """What was read."""

    total_tokens: int = Field(description="Tokens of the question and the documents.", examples=[27])


class JinaResponse(ResponseModel):
    """Results, best first."""

    model: str = Field(description="The model that was used.", examples=["all-MiniLM-L6-v2"])
    usage: Usage = Field(description="What was read.")
    results: list[DocumentRank] = Field(description="Best first.")
    dartboard: Made = Field(description="What made the order.")


class ApiVersion(ResponseModel):
    """The version of Cohere's shape."""

    version: Literal["1", "2"] = Field(description="As the path says.", examples=["2"])


class BilledUnits(ResponseModel):
    """Searches, as Cohere counts them."""

    search_units: int = Field(description="One a request.", examples=[1])


class Tokens(ResponseModel):
    """What was read."""

    input_tokens: int = Field(description="Tokens of the question and the documents.", examples=[27])


class Meta(ResponseModel):
    """About the request."""

    api_version: ApiVersion = Field(description="The version of this shape.")
    billed_units: BilledUnits = Field(description="Nothing is billed here.")
    tokens: Tokens = Field(description="What was read.")
    warnings: list[str] = Field(
        [], description="Where documents were longer than the model reads.", examples=[[]]
    )


class CohereResponse(ResponseModel):
    """Results, best first."""

    id: str = Field(description="A new id.", examples=["5f3a9c0e-1b2d-4f68-9a7c-2f1d3e4b5a69"])
    results: list[DocumentRank] = Field(description="Best first.")
    meta: Meta = Field(description="About the request.")
    dartboard: Made = Field(description="What made the order.")


def _shape(body: Any) -> str:
    """Whose shape a body has; in brackets, so that messages do not take it for a field."""
    if not isinstance(body, dict):
        return "(documents)"
    if "texts" in body:
        return "(texts)"
    return "(cohere)" if "rank_fields" in body or "max_chunks_per_doc" in body else "(documents)"


AnyRequest = Annotated[
    Annotated[TeiRequest, Tag("(texts)")]
    | Annotated[JinaRequest, Tag("(documents)")]
    | Annotated[CohereV1Request, Tag("(cohere)")],
    Discriminator(_shape),
]
"""What tells requests apart is in the body: ``texts``, ``documents``, or a field that only Cohere has."""
AnyResponse = list[TeiRank] | JinaResponse | CohereResponse


router = APIRouter(tags=["rerank"], route_class=JsonRoute, dependencies=READ)


@router.post("/rerank", operation_id="rerank", response_model=AnyResponse)
@in_worker
def rerank(body: AnyRequest, service: ServiceDep) -> Response:
    """Order texts as text-embeddings-inference does, for clients of its `/rerank`.

    With `documents` instead of `texts`, the request and its answer are those of `/v1/rerank`.
    """
    return _rerank(service, body)


@router.post("/v1/rerank", operation_id="rerank_v1", response_model=AnyResponse)
@in_worker
def rerank_v1(body: AnyRequest, service: ServiceDep) -> Response:
    """Order documents as Jina does; as Cohere's first version where the body is one of its requests."""
    return _rerank(service, body)


@router.post("/v2/rerank", operation_id="rerank_v2", response_model=CohereResponse)
@in_worker
def rerank_v2(body: CohereV2Request, service: ServiceDep) -> Response:
    """Order documents as Cohere does, for clients of its second version."""
    return _rerank(service, body)


def _rerank(service: Service, body: TeiRequest | JinaRequest | CohereV1Request | CohereV2Request) -> Response:
    if isinstance(body, TeiRequest):
        texts, top_n = body.texts, None
    else:
        texts, top_n = _texts_of(body), body.top_n
    field = "texts" if isinstance(body, TeiRequest) else "documents"
    at_most(field, len(texts), min(MOST_TEXTS, service.settings.vectors), " texts")
    model = service.engines.model
    check_query(model, body.query, service.settings)
    ranking = rank_texts(
        model,
        body.query,
        texts,
        method=body.method,
        sigma=body.sigma,
        top_n=top_n,
        most_tokens=body.max_tokens_per_doc if isinstance(body, CohereV2Request) else None,
        refuse_long=isinstance(body, TeiRequest) and body.truncate is False,
    )
    if isinstance(body, TeiRequest):
        return json_response(_as_tei(ranking, body))
    if isinstance(body, JinaRequest):
        return json_response(_as_jina(ranking, body))
    return json_response(_as_cohere(ranking, body))


def _texts_of(body: DocumentsRequest) -> list[str]:
    """The text of each document; of an object, its ``text``, or the ``rank_fields`` that it has."""
    fields = (body.rank_fields or ("text",)) if isinstance(body, CohereV1Request) else None
    texts: list[str] = []
    for at, document in enumerate(body.documents):
        if isinstance(document, str):
            texts.append(document)
        elif fields is not None:
            values = (document[name] for name in fields if name in document)
            lines = (one if isinstance(one, str) else orjson.dumps(one).decode() for one in values)
            texts.append("\n".join(lines))
        elif isinstance(text := document.get("text"), str):
            texts.append(text)
        else:
            raise Invalid(
                "an object among the documents needs a text, which is a string", field=f"documents.{at}.text"
            )
    return texts


def _as_tei(ranking: Ranking, body: TeiRequest) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "score": math.log(score / (1.0 - score)) if body.raw_scores else score,
            **({"text": body.texts[index]} if body.return_text else {}),
            "dartboard": explained,
        }
        for index, score, explained in ranking.ranks
    ]


def _as_jina(ranking: Ranking, body: JinaRequest) -> dict[str, Any]:
    return {
        "model": ranking.made["model"],
        "usage": {"total_tokens": ranking.tokens},
        "results": _results(ranking, None if body.return_documents is False else body.documents),
        "dartboard": ranking.made,
    }


def _as_cohere(ranking: Ranking, body: CohereV1Request | CohereV2Request) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "api_version": {"version": "1" if isinstance(body, CohereV1Request) else "2"},
        "billed_units": {"search_units": 1},
        "tokens": {"input_tokens": ranking.tokens},
    }
    if truncated := ranking.made["truncated"]:
        meta["warnings"] = [f"{truncated} of the documents are longer than the model reads and were cut"]
    return {
        "id": str(uuid.uuid4()),
        "results": _results(ranking, body.documents if body.return_documents else None),
        "meta": meta,
        "dartboard": ranking.made,
    }


def _results(ranking: Ranking, documents: Sequence[Document] | None) -> list[dict[str, Any]]:
    """Jina's and Cohere's results; with documents, each repeats its own."""
    results = []
    for index, score, explained in ranking.ranks:
        result: dict[str, Any] = {"index": index, "relevance_score": score, "dartboard": explained}
        if documents is not None:
            document = documents[index]
            result["document"] = {"text": document} if isinstance(document, str) else document
        results.append(result)
    return results
