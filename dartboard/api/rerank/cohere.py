"""The shape of Cohere's reranker, in its first and second version."""

import uuid
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from dartboard.api.rerank.common import Made, Ranking, rerank
from dartboard.api.rerank.documents import (
    DOCUMENTS,
    Document,
    DocumentRank,
    DocumentsRequest,
    as_object,
    fields_of,
    texts_of,
)
from dartboard.api.schemas.common import Answer
from dartboard.api.schemas.retrieve import Count
from dartboard.api.service import Service

_ID = "5f3a9c0e-1b2d-4f68-9a7c-2f1d3e4b5a69"
_RESULT = {
    "index": 0,
    "relevance_score": 0.71,
    "dartboard": {"gain": 0.62, "coverage": 0.62, "similarity": 0.71, "stands_for": [0]},
}
_MADE = {"model": "all-MiniLM-L6-v2", "method": "dartboard", "sigma": 0.09, "truncated": 0}
_META = {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}, "tokens": {"input_tokens": 27}}


class CohereV2Request(DocumentsRequest):
    """A question and documents, as Cohere's second version takes them."""

    max_tokens_per_doc: Count | None = Field(
        None, description="Only so many tokens of a document are read.", examples=[256]
    )
    priority: int | None = Field(
        None, description="Taken, and not used: requests wait their turn.", examples=[0]
    )
    return_documents: bool | None = Field(
        None, description="Whether results repeat their document; not where it is left out.", examples=[False]
    )


class CohereV1Request(DocumentsRequest):
    """A question and documents, as Cohere's first version takes them."""

    model_config = ConfigDict(
        json_schema_extra={"anyOf": [{"required": ["rank_fields"]}, {"required": ["max_chunks_per_doc"]}]}
    )

    documents: Annotated[list[str | dict[str, Any]], Field(min_length=1)] = Field(
        description="Texts, or objects with the fields that `rank_fields` names, or with a `text`.",
        examples=[DOCUMENTS],
    )
    rank_fields: list[str] | None = Field(
        None,
        min_length=1,
        description="The fields of objects that are read, in this order.",
        examples=[["text"]],
    )
    max_chunks_per_doc: Count | None = Field(
        None, description="Taken, and not used: the beginning of a document is read.", examples=[1]
    )
    return_documents: bool | None = Field(
        None, description="Whether results repeat their document; not where it is left out.", examples=[False]
    )


class ApiVersion(Answer):
    """The version of Cohere's shape."""

    version: Literal["1", "2"] = Field(description="As the path says.", examples=["2"])


class BilledUnits(Answer):
    """Searches, as Cohere counts them."""

    search_units: int = Field(description="One a request.", examples=[1])


class Tokens(Answer):
    """What was read."""

    input_tokens: int = Field(description="Tokens of the question and the documents.", examples=[27])


class Meta(Answer):
    """About the request."""

    api_version: ApiVersion = Field(description="The version of this shape.", examples=[{"version": "2"}])
    billed_units: BilledUnits = Field(description="Nothing is billed here.", examples=[{"search_units": 1}])
    tokens: Tokens = Field(description="What was read.", examples=[{"input_tokens": 27}])
    warnings: list[str] = Field(
        [], description="Where documents were longer than the model reads.", examples=[[]]
    )


class CohereResponse(Answer):
    """Results, best first."""

    id: str = Field(description="A new id.", examples=[_ID])
    results: list[DocumentRank] = Field(description="Best first.", examples=[[_RESULT]])
    meta: Meta = Field(description="About the request.", examples=[_META])
    dartboard: Made = Field(description="What made the order.", examples=[_MADE])


def answer_v2(service: Service, body: CohereV2Request) -> dict[str, Any]:
    """Results, best first."""
    made = rerank(
        service,
        body,
        texts_of(body.documents),
        field="documents",
        top_n=body.top_n,
        most_tokens=body.max_tokens_per_doc,
    )
    return _answer("2", made, body.documents if body.return_documents else None)


def answer_v1(service: Service, body: CohereV1Request) -> dict[str, Any]:
    """Results, best first."""
    texts = fields_of(body.documents, body.rank_fields or ("text",))
    made = rerank(service, body, texts, field="documents", top_n=body.top_n)
    return _answer("1", made, body.documents if body.return_documents else None)


def _answer(version: str, made: Ranking, documents: list[Document] | None) -> dict[str, Any]:
    truncated = made.made["truncated"]
    meta: dict[str, Any] = {
        "api_version": {"version": version},
        "billed_units": {"search_units": 1},
        "tokens": {"input_tokens": made.tokens},
    }
    if truncated:
        meta["warnings"] = [f"{truncated} of the documents are longer than the model reads and were cut"]
    return {
        "id": str(uuid.uuid4()),
        "results": [
            {
                "index": rank.index,
                "relevance_score": rank.score,
                **({"document": as_object(documents[rank.index])} if documents else {}),
                "dartboard": rank.explained,
            }
            for rank in made.ranks
        ],
        "meta": meta,
        "dartboard": made.made,
    }
