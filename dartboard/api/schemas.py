"""What all schemas share: strict models, texts and ids that every store can keep, the error's shape."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    model_validator,
)
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA

T = TypeVar("T")
Listed = Annotated[list[T], Field(fail_fast=True)]
"""A list of a request: the first wrong entry is an error, and those after it are not looked at."""
LONGEST_ID = 1000
MOST_FIELDS = 50
"""Fields of one object of a request."""
NO_NUL = r"^[^\u0000]*$"


class RequestModel(BaseModel):
    """A request: no unknown fields, no "5" for 5, no true for 1, no NaN.

    Looking for errors is bounded: many unknown fields are one error, and so are many wrong entries of
    a list (``Listed``). Otherwise a few megabytes of wrong fields would keep the event loop busy for seconds.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _few_fields(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, dict) and len(given) > MOST_FIELDS:
            raise ValueError(f"has {len(given)} fields: no request has more than {MOST_FIELDS}")
        return handler(given)


class ResponseModel(BaseModel):
    """A response; made as plain data, described by its model."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class TextPattern:
    """Text that matches a pattern, which the OpenAPI document shows; callers are told in words."""

    pattern: str
    words: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the text is known to be one."""
        return no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The pattern beside what the text's schema says."""
        return {**handler(schema), "pattern": self.pattern}

    def _check(self, text: str) -> str:
        if not re.search(self.pattern.removesuffix("$") + r"\Z", text):
            raise ValueError(self.words)
        return text


def _without_nul(text: str) -> str:
    if "\x00" in text:
        raise ValueError("text must not contain the character U+0000")
    return text


def not_blank(text: str) -> str:
    """Text that says something, or what is wrong with it as a ``ValueError``."""
    if not text.strip():
        raise ValueError("is empty, or nothing but space")
    return _without_nul(text)


def _printable(text: str) -> str:
    if not text.strip() or text in (".", "..") or not text.isprintable():
        raise ValueError("a name is 1 to 200 printable characters and neither . nor ..")
    return text


Text = Annotated[str, AfterValidator(not_blank), Field(min_length=1, json_schema_extra={"pattern": NO_NUL})]
"""Text that says something."""

Id = Annotated[
    str,
    AfterValidator(_without_nul),
    Field(min_length=1, max_length=LONGEST_ID, json_schema_extra={"pattern": NO_NUL}),
]
"""The id of a chunk or of a document."""

CollectionName = Annotated[str, AfterValidator(_printable), Field(min_length=1, max_length=200)]

Sigma = Annotated[
    Annotated[float, Field(ge=SMALLEST_SIGMA, le=LARGEST_SIGMA)] | Literal["auto"],
    Field(
        description="Spread of a question around what it means, on the scaled cosine distance where nothing "
        "else is said; `auto` takes it from the collection's calibration, if any, else from the candidates.",
        examples=["auto", 0.09],
    ),
]
Metadata = dict[str, Any]


class Passage(ResponseModel):
    """A passage as it is kept."""

    chunk_id: str = Field(description="The passage's id.", examples=["slow-01"])
    text: str = Field(description="The passage.", examples=["Consumers fall behind, as a rule, because …"])
    metadata: Metadata = Field(
        description="What is known of the passage.",
        examples=[{"source": "runbook/consumers-falling-behind.md", "theme": "slow handlers"}],
    )


class FieldError(ResponseModel):
    """One field that was wrong."""

    field: str = Field(description="The field, as a path with dots.", examples=["top_k"])
    message: str = Field(
        description="What is wrong with it, and what is allowed.",
        examples=["should be greater than or equal to 1"],
    )


class Problem(ResponseModel):
    """An error (RFC 9457, `application/problem+json`). Nothing of the request is repeated in it."""

    title: str = Field(description="The name of the status.", examples=["Unprocessable Content"])
    status: int = Field(description="The HTTP status.", examples=[422])
    code: str = Field(description="One word, for programs.", examples=["invalid_input"])
    detail: str = Field(
        description="What was wrong and what to do.",
        examples=["top_k: should be greater than or equal to 1"],
    )
    message: str = Field(
        description="The same as `detail`.", examples=["top_k: should be greater than or equal to 1"]
    )
    errors: list[FieldError] = Field(
        description="The fields that were wrong, where it is about fields.",
    )
    request_id: str | None = Field(
        description="The id of the request, also in the header X-Request-Id and in the log.",
        examples=["5f3a9c0e1b2d4f68"],
    )
