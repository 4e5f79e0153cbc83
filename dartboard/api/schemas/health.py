"""What the service says of itself."""

from typing import Literal

from pydantic import Field

from dartboard.api.schemas.common import Answer


class Health(Answer):
    """What is served."""

    status: Literal["healthy"] = Field(
        description="`healthy`; a service that is not answers with an error.", examples=["healthy"]
    )
    version: str = Field(description="The version of dartboard.", examples=["1.0.0"])
    embedding_model: str = Field(
        description="The model of the default collection.", examples=["all-MiniLM-L6-v2"]
    )
    corpus_size: int = Field(description="Passages in the default collection.", examples=[10000])
    collection: str = Field(
        description="The collection that is asked where a request names none.", examples=["default"]
    )
    collections: list[str] = Field(description="All collections.", examples=[["default", "demo"]])
    answer_model: str | None = Field(
        description="The language model that `/ask` asks; null where there is none.",
        examples=["openai:llama3.1"],
    )


class Alive(Answer):
    """A sign of life."""

    status: Literal["ok", "ready"] = Field(description="`ok` or `ready`.", examples=["ok"])
