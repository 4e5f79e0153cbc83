"""The shape of Jina's reranker, which vLLM and others share: ``documents`` in, ``results`` out."""

from typing import Any

from pydantic import Field

from dartboard.api.rerank.common import Made, rerank
from dartboard.api.rerank.documents import DocumentRank, DocumentsRequest, as_object, texts_of
from dartboard.api.schemas.common import Answer
from dartboard.api.service import Service

_MADE = {"model": "all-MiniLM-L6-v2", "method": "dartboard", "sigma": 0.09, "truncated": 0}
_RESULT = {
    "index": 0,
    "relevance_score": 0.71,
    "document": {"text": "Consumers fall behind when messages take long to handle."},
    "dartboard": {"gain": 0.62, "coverage": 0.62, "similarity": 0.71, "stands_for": [0]},
}


class JinaRequest(DocumentsRequest):
    """A question and documents, as Jina takes them."""

    return_documents: bool | None = Field(
        None,
        description="Whether results repeat their document; they do where it is left out.",
        examples=[True],
    )


class Usage(Answer):
    """What was read."""

    total_tokens: int = Field(description="Tokens of the question and the documents.", examples=[27])


class JinaResponse(Answer):
    """Results, best first."""

    model: str = Field(description="The model that was used.", examples=["all-MiniLM-L6-v2"])
    usage: Usage = Field(description="What was read.", examples=[{"total_tokens": 27}])
    results: list[DocumentRank] = Field(description="Best first.", examples=[[_RESULT]])
    dartboard: Made = Field(description="What made the order.", examples=[_MADE])


def answer_jina(service: Service, body: JinaRequest) -> dict[str, Any]:
    """Results, best first."""
    made = rerank(service, body, texts_of(body.documents), field="documents", top_n=body.top_n)
    return {
        "model": made.made["model"],
        "usage": {"total_tokens": made.tokens},
        "results": [
            {
                "index": rank.index,
                "relevance_score": rank.score,
                **(
                    {}
                    if body.return_documents is False
                    else {"document": as_object(body.documents[rank.index])}
                ),
                "dartboard": rank.explained,
            }
            for rank in made.ranks
        ],
        "dartboard": made.made,
    }
