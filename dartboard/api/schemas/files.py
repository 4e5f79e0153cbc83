"""What an upload is answered with, and what its job finds."""

from typing import Literal

from pydantic import Field

from dartboard.api.schemas.common import Answer


class UploadAccepted(Answer):
    """The files have arrived; a job reads, splits, encodes and keeps them."""

    job_id: str = Field(description="The job that indexes the files.", examples=["3f9a1c0b7d2e4f68"])
    status_url: str = Field(
        description="Where to ask how far it is, and, with DELETE, to stop it.",
        examples=["/api/dartboard/jobs/3f9a1c0b7d2e4f68"],
    )
    collection: str = Field(description="The collection that grows.", examples=["handbook"])
    files: int = Field(description="How many files arrived.", examples=[12])
    bytes: int = Field(description="The size of all of them together.", examples=[482133])


class FileResult(Answer):
    """What became of one file."""

    name: str = Field(
        description="The name that its passages carry as their source.", examples=["guides/install.md"]
    )
    state: Literal["indexed", "unchanged", "left_out"] = Field(
        description="indexed: its passages are in the collection now; unchanged: they were there already; "
        "left_out: nothing of it can be used, and the message says why.",
        examples=["indexed"],
    )
    chunks: int = Field(description="Passages that it was split into.", examples=[7])
    message: str = Field(description="What is wrong, or what had to be guessed.", examples=[""])


class IndexingResult(Answer):
    """The result of an indexing job, in ``GET /jobs/{id}``."""

    collection: str = Field(description="The collection that grew.", examples=["handbook"])
    indexed: int = Field(description="Files whose passages are new or replaced.", examples=[11])
    unchanged: int = Field(description="Files that were there already.", examples=[0])
    left_out: int = Field(description="Files of which nothing can be used.", examples=[1])
    chunks: int = Field(description="Passages written.", examples=[77])
    seconds: float = Field(description="How long indexing took.", examples=[3.2])
    files: list[FileResult] = Field(description="File by file, those with trouble first.")
    more_files: int = Field(description="Files that the list leaves off.", examples=[0])
