"""Documents and collections."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from dartboard.api.schemas.common import Answer, Id, Metadata, Model, Words


class DocumentLine(Model):
    """One line of an upsert. A document of the same id is replaced."""

    id: Id | None = Field(
        None,
        description="Its id, the `source` of its passages; made from the text where it is left out.",
        examples=["handbook/leave.md"],
    )
    text: Words = Field(description="The text; long ones are split.", examples=["You earn two days a month."])
    metadata: Metadata = Field(
        {},
        description="What filters and results should know of it: JSON.",
        examples=[{"year": 2024, "lang": "en"}],
    )


class LineError(Answer):
    """A line that was not taken."""

    line: int = Field(description="Its number, from 1.", examples=[3])
    message: str = Field(description="What is wrong with it.", examples=["text: is required"])


class DocumentLineResult(Answer):
    """A document that was taken."""

    line: int = Field(description="Its line, from 1.", examples=[1])
    id: str = Field(description="Its id.", examples=["handbook/leave.md"])
    chunks: int = Field(description="Passages that it was split into.", examples=[3])


class UpsertResponse(Answer):
    """What became of the lines. What is counted as accepted is kept."""

    accepted: int = Field(description="Documents that were taken.", examples=[2])
    chunks: int = Field(description="Passages that they were split into.", examples=[5])
    failed: int = Field(description="Lines that were not taken.", examples=[1])
    errors: list[LineError] = Field(
        description="Why, by line; the first thousand.",
        examples=[[{"line": 3, "message": "text: is required"}]],
    )
    documents: list[DocumentLineResult] = Field(
        description="The documents that were taken; the first thousand.",
        examples=[[{"line": 1, "id": "handbook/leave.md", "chunks": 3}]],
    )


class Passage(Answer):
    """A passage as it is kept."""

    chunk_id: str = Field(description="Its id.", examples=["handbook/leave.md#0f2c9d1e5a7b3c48"])
    text: str = Field(description="Its text.", examples=["You earn two days a month."])
    metadata: Metadata = Field(description="What is known of it.", examples=[{"source": "handbook/leave.md"}])


class DocumentResponse(Answer):
    """A document as it is kept: its passages in order."""

    id: str = Field(description="The document's id, or the passage's.", examples=["handbook/leave.md"])
    passages: list[Passage] = Field(description="Its passages.", examples=[[]])
    truncated: bool = Field(description="Whether there are more than a thousand.", examples=[False])


class DeleteRequest(Model):
    """What to delete: one of the two."""

    ids: Annotated[list[Id], Field(min_length=1, max_length=10_000)] | None = Field(
        None, description="Ids of documents or of passages.", examples=[["handbook/leave.md"]]
    )
    filter: Words | dict[str, Any] | None = Field(
        None, description="A filter on metadata, as in `/retrieve`.", examples=["year < 2020"]
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or a filter: one of the two")
        return self


class Deleted(Answer):
    """What is gone."""

    deleted: int = Field(description="Passages that were deleted.", examples=[3])


class Chunking(Model):
    """How documents are split; sizes in tokens of the model."""

    method: Literal["auto", "tokens", "sentences", "markdown", "code"] = Field(
        "auto", description="Where to cut.", examples=["auto"]
    )
    size: int = Field(256, ge=16, le=2048, description="Longest passage.", examples=[256])
    overlap: int = Field(32, ge=0, le=512, description="What neighbours share.", examples=[32])

    @model_validator(mode="after")
    def _smaller(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError("overlap must be smaller than size")
        return self


class CreateRequest(Model):
    """A new collection; its model and retriever are those of the service."""

    chunking: Chunking = Field(
        default_factory=lambda: Chunking.model_validate({}),
        description="How its documents are split.",
        examples=[{"size": 256, "overlap": 32}],
    )


class CollectionInfo(Answer):
    """A collection."""

    name: str = Field(description="Its name.", examples=["default"])
    passages: int = Field(description="How many passages it has.", examples=[10000])
    embedding_model: str = Field(
        description="The model that made its vectors.", examples=["all-MiniLM-L6-v2"]
    )
    dimension: int = Field(description="The length of its vectors.", examples=[384])
    retriever: str = Field(description="Who finds candidates in it.", examples=["hybrid"])
    chunking: dict[str, Any] | None = Field(
        description="How its documents are split; null where that is not known.",
        examples=[{"method": "auto", "size": 256, "overlap": 32, "smallest": 32}],
    )
    calibrated: bool = Field(description="Whether σ was calibrated on it.", examples=[False])
    writable: bool = Field(description="Whether documents can be added.", examples=[True])
    default: bool = Field(description="Whether requests that name none ask it.", examples=[True])


class CollectionList(Answer):
    """All collections."""

    collections: list[CollectionInfo] = Field(description="By name.", examples=[[]])
