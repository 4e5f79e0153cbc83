"""What requests and answers share: strict bodies, texts and ids that every store can keep, search options.

The options of a search are derived from :class:`~dartboard.search_options.SearchOptions`: range, help and
aliases stand there. An answer is one model, filled and returned.
"""

from codecs import BOM_UTF8
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

import orjson
from fastapi import Depends, Request
from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    create_model,
    model_validator,
)
from starlette.concurrency import run_in_threadpool

from dartboard.api.errors import Invalid, UnsupportedType, invalid
from dartboard.api.logs import questions_of
from dartboard.api.service import Service, ServiceDep
from dartboard.api.settings import ServiceSettings
from dartboard.config import RerankerType
from dartboard.embeddings.texts import count_tokens
from dartboard.engine import Engine
from dartboard.search_options import DEFAULT_K, TRIAGE, SearchKeywords, SearchOptions, declared_options
from dartboard.stores import Filter, filter_from_json, parse_filter
from dartboard.stores.filters import Among, And, Exists, In, Or, check_filter
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA

T = TypeVar("T")
Listed = Annotated[list[T], Field(fail_fast=True)]
"""A list of a request: the first wrong entry is an error, and those after it are not looked at."""
MOST_FIELDS = 50
"""Fields of one object of a request."""
LARGE = 256 * 1024
"""Bytes of a body that is read in a thread, while others are answered."""


class RequestModel(BaseModel):
    """A request: no unknown fields, no "5" for 5, no true for 1, no NaN.

    Looking for errors is bounded: too many fields are one error, and so are many wrong entries of a list
    (``Listed``). Otherwise a few megabytes of wrong fields would keep the process busy for seconds.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _few_fields(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if isinstance(given, dict) and len(given) > MOST_FIELDS:
            raise ValueError(f"has {len(given)} fields: no request has more than {MOST_FIELDS}")
        return handler(given)


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


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


_NO_NUL = {"pattern": r"^[^\u0000]*$"}
Whole = Annotated[int, BeforeValidator(_whole)]
"""A whole number; 5.0 is one."""
Count = Annotated[Whole, Field(ge=1)]
Text = Annotated[str, AfterValidator(not_blank), Field(min_length=1, json_schema_extra=_NO_NUL)]
"""Text that says something."""
Query = Annotated[
    Text, Field(description="What to ask, in the model's tokens no longer than the limit here.")
]
Id = Annotated[
    str, AfterValidator(_without_nul), Field(min_length=1, max_length=1000, json_schema_extra=_NO_NUL)
]
"""The id of a chunk or of a document."""
FieldName = Annotated[str, Field(min_length=1, max_length=200)]
CollectionName = Annotated[str, AfterValidator(_printable), Field(min_length=1, max_length=200)]
MethodName = Literal["dartboard", "mmr", "top_k", "near_duplicate_filter", "random"]
Sigma = Annotated[float, Field(ge=SMALLEST_SIGMA, le=LARGEST_SIGMA)] | Literal["auto"]

_JSON_TYPES: dict[str, Any] = {
    "also": Listed[Text],
    "weights": Listed[Annotated[float, Field(gt=0, le=1e6)]] | None,
    "seen": Listed[Id],
    "method": MethodName,
    "sigma": Sigma,
    "reranker": RerankerType,
    "triage_k": Whole | None,
    "where": Text | dict[str, Any] | None,
    "must_include": Annotated[Listed[Id], Field(max_length=1000)],
    "exclude": Annotated[Listed[Id], Field(max_length=10_000)],
    "max_per": Annotated[dict[FieldName, Count], Field(max_length=10)] | None,
    "prefer": FieldName | None,
    "source_field": FieldName,
}
"""Types of options in JSON, where they are not just the numbers that ``SearchOptions`` declares."""
_MOST_SKIPPED = 100_000
_NUMBERS: dict[Any, Any] = {int: Whole, int | None: Whole | None, float: float, float | None: float | None}


def search_fields(*names: str) -> dict[str, Any]:
    """Fields of a request by the names of search options, as ``SearchOptions`` declares them."""
    found: dict[str, Any] = {}
    for name in names:
        option = declared_options()[name]
        bounds: dict[str, Any] = {"max_length": option.most}
        if name != "sigma":
            bounds |= {"ge": option.low, "le": _MOST_SKIPPED if name == "offset" else option.high}
        default = None if name == "triage_k" else option.default
        found[name] = (
            _JSON_TYPES.get(name) or _NUMBERS[option.type],
            Field(
                list(default) if default == () else default,
                validation_alias=AliasChoices(*option.names.aliases, name) if option.names.aliases else None,
                description=option.help,
                **{key: value for key, value in bounds.items() if value is not None},
            ),
        )
    return found


class SearchBase(RequestModel):
    """How passages are found and picked; the options themselves are derived."""

    collection: CollectionName | None = Field(
        None, description="The collection; the service's own otherwise."
    )

    def keywords(self, settings: ServiceSettings) -> SearchKeywords:
        """The options of the request, within the service's limits; ``Invalid`` where a number is above."""
        options: SearchKeywords = {}
        for name in SearchKeywords.__annotations__:
            if (value := getattr(self, name, None)) is not None:
                if name in ("k", "token_budget", "triage_k"):
                    at_most(name, value, getattr(settings, name))
                options[name] = value  # type: ignore[literal-required]
        if "k" not in options and "token_budget" not in options:
            options["k"] = min(DEFAULT_K, settings.k)
        options.setdefault("triage_k", min(settings.triage_k, TRIAGE))
        if options.get("reranker", "cosine") != "cosine":
            shown = (options.get("k") or 0) + options.get("offset", 0)
            options["triage_k"] = min(options["triage_k"], max(settings.pair_candidates, shown))
        options["where"] = condition(getattr(self, "where", None), getattr(self, "corpus_ids", None))
        return options

    def options(self, service: Service, engine: Engine, query: str | None = None) -> SearchOptions:
        """What the engine is asked for; ``Invalid`` too where ``query`` or a further question is too long."""
        options = SearchOptions(**self.keywords(service.settings))
        if query is not None:
            check_length(engine, [query], service.settings, "query")
        check_length(engine, options.also, service.settings, "also")
        return options


OPTIONS = tuple(name for name in declared_options() if name not in ("tokenizer", "sigma_min"))
"""The options that a request may set."""


def search_request(*, leave_out: str = "") -> Any:
    """A model with every option of a search but one, to be inherited from."""
    ids = Annotated[Listed[Id], Field(max_length=10_000)] | None
    described = Field(None, description="Only these: ids of chunks, or of documents (their `source`).")
    names = (name for name in OPTIONS if name != leave_out)
    return create_model(
        "SearchRequest", __base__=SearchBase, corpus_ids=(ids, described), **search_fields(*names)
    )


if TYPE_CHECKING:
    SearchRequest = SearchBase
else:
    SearchRequest = search_request()


class Passage(BaseModel):
    """A passage as it is kept."""

    chunk_id: str
    text: str
    metadata: dict[str, Any]


class FieldError(BaseModel):
    """One field that was wrong."""

    field: str
    message: str


class Problem(BaseModel):
    """An error (RFC 9457, `application/problem+json`)."""

    title: str = Field(description="The name of the status.")
    status: int
    code: str = Field(description="One word, for programs.")
    detail: str = Field(description="What was wrong and what to do.")
    errors: list[FieldError] = Field(description="The fields that were wrong, 20 at most.")
    request_id: str = Field(description="Also in the header X-Request-Id and in the log.")
    message: str | None = Field(None, description="The same as `detail`, for rerank clients.")


def json_body(model: type[T], *, optional: bool = False, line: str = "searches") -> Any:
    """A dependency that reads the body as JSON, strictly; ``line`` is the work that the request is for.

    The key is looked at before (a router's dependencies come first), and where that line is full the body is
    not read at all. orjson refuses NaN, numbers beyond a double, half surrogates and bytes that are no UTF-8.
    """

    async def read(request: Request, service: ServiceDep) -> T:
        getattr(service, line).check_room()
        data = await request.body()
        if not data and optional:
            return model()
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise UnsupportedType("send JSON: Content-Type: application/json")
        parse: Callable[[bytes], T] = partial(parse_json, model)
        body = parse(data) if len(data) < LARGE else await run_in_threadpool(parse, data)
        if service.settings.log_queries:
            request.state.asked = questions_of(body)
        return body

    read.body_model = model  # type: ignore[attr-defined]  # for the OpenAPI document
    return Depends(read)


def parse_json(model: Any, data: bytes) -> Any:
    """The value of a body or of a line, as a model, a union of models, or plain data where it is None."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if data.startswith(BOM_UTF8):
            raise Invalid(
                "the body begins with a byte order mark: send UTF-8 without it", field="body"
            ) from None
        place = f"line {error.lineno}, column {error.colno}"
        reason = f"not JSON (NaN and Infinity are not JSON): {error.msg}, {place}"
        raise Invalid(reason if data else "the body is empty: send a JSON object", field="body") from None
    try:
        return value if model is None else model.model_validate(value)
    except ValidationError as error:
        raise invalid(error, model) from None


def at_most(field: str, value: float | None, limit: int, what: str = "") -> None:
    """Refuse a number above a limit of the service, which is named."""
    if value is not None and value > limit:
        raise Invalid(f"{field} is limited to {limit}{what} here", field=field)


def check_length(
    engine: Engine | Any, questions: Sequence[str], settings: ServiceSettings, field: str
) -> None:
    """Refuse questions longer than the limit, in the model's own tokens."""
    most = settings.query_tokens
    model = getattr(engine, "model", engine)
    if questions and max(count_tokens(model, questions, most=most)) > most:
        raise Invalid(f"{field} is limited to {most} tokens here: shorten it", field=field)


def condition(given: str | dict[str, Any] | None, corpus_ids: Sequence[str] | None) -> Filter | None:
    """A filter, as text or as JSON, and ids together; None where everything is meant.

    Ids are those of passages, or of documents; passages need not have a source.
    """
    parts: list[Filter] = []
    try:
        if given is not None:
            parts.append(parse_filter(given) if isinstance(given, str) else filter_from_json(given))
        if corpus_ids is not None:
            wanted = tuple(dict.fromkeys(corpus_ids))
            parts.append(Or((Among(wanted), And((Exists("source"), In("source", wanted))))))
        both = And(tuple(parts)) if len(parts) > 1 else parts[0] if parts else None
        if both is not None:
            check_filter(both)
    except ValueError as error:
        raise Invalid(str(error), field="where") from None
    return both
