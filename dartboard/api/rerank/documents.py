"""Documents as Jina and Cohere take them: texts, or objects that hold one."""

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from pydantic import Field, WithJsonSchema

from dartboard.api.errors import Invalid
from dartboard.api.rerank.common import Explained, RerankOptions
from dartboard.api.schemas.common import Answer
from dartboard.api.schemas.retrieve import Count

DOCUMENTS: list[Any] = [
    "Consumers fall behind when messages take long to handle.",
    {"text": "Add partitions."},
]
_WITH_TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": True,
}
Document = str | dict[str, Any]
Documents = Annotated[list[str | Annotated[dict[str, Any], WithJsonSchema(_WITH_TEXT)]], Field(min_length=1)]


class DocumentsRequest(RerankOptions):
    """What requests with documents have in common."""

    model: str | None = Field(
        None,
        description="Taken, and not used: the service's own model orders the documents.",
        examples=["rerank-v3.5"],
    )
    documents: Documents = Field(description="Texts, or objects with a `text`.", examples=[DOCUMENTS])
    top_n: Count | None = Field(None, description="How many results; all where it is left out.", examples=[2])


class DocumentRank(Answer):
    """One document in its place."""

    index: int = Field(description="Its position in the request.", examples=[0])
    relevance_score: float = Field(
        description="In (0, 1), strictly decreasing along the results.", examples=[0.71]
    )
    document: dict[str, Any] | None = Field(
        None, description="With `return_documents`.", examples=[{"text": DOCUMENTS[0]}]
    )
    dartboard: Explained = Field(
        description="Why it stands here.",
        examples=[{"gain": 0.62, "coverage": 0.62, "similarity": 0.71, "stands_for": [0]}],
    )


def texts_of(documents: Sequence[Document]) -> list[str]:
    """The text of each document."""
    return [_text_of(document, at) for at, document in enumerate(documents)]


def fields_of(documents: Sequence[Document], fields: Sequence[str]) -> list[str]:
    """The text of each document; of an object, the values of ``fields`` that it has, one a line."""
    return [
        document
        if isinstance(document, str)
        else "\n".join(_words(document[name]) for name in fields if name in document)
        for document in documents
    ]


def as_object(document: Document) -> dict[str, Any]:
    """A document as results repeat it."""
    return {"text": document} if isinstance(document, str) else document


def _text_of(document: Document, at: int) -> str:
    text = document if isinstance(document, str) else document.get("text")
    if not isinstance(text, str):
        raise Invalid(
            "an object among the documents needs a text, which is a string", field=f"documents.{at}.text"
        )
    return text


def _words(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
