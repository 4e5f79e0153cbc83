"""``POST /ask``: an answer with numbered citations over the passages that together say most.

Of an error, the log gets a word and a status; what the model's endpoint says may quote the question.
"""

import logging
import time
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from dartboard.answering import AnswerError, AnswerModel, AnswerStream, decomposed, numbered
from dartboard.answering.decomposition import MOST_PARTS
from dartboard.api.endpoints.retrieve import FoundRelevance, QuestionCoverage, search
from dartboard.api.errors import ApiError, Invalid, Unavailable
from dartboard.api.event_stream import MEDIA_TYPE, SendEvent, streamed
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, json_response
from dartboard.api.schemas import Passage, ResponseModel
from dartboard.api.search_request import Query, SearchRequest, check_query
from dartboard.api.service import Service, ServiceDep
from dartboard.embeddings.texts import count_tokens
from dartboard.engine import Engine
from dartboard.errors import ConfigError, DeadlineError
from dartboard.search_options import SearchOptions

logger = logging.getLogger(__name__)

_TEXT = "Handlers that wait for something slow hold everything up [1]. Adding consumers moves partitions [2]."


class AskRequest(SearchRequest):
    """One question. Who answers it is the service's setting, not the request's."""

    query: Query
    stream: bool = Field(
        True,
        description="Whether the answer comes as server-sent events as it is written, or as JSON at its end.",
        examples=[False],
    )
    decompose: int = Field(
        0,
        ge=0,
        le=MOST_PARTS,
        description="Let the language model split the question into at most so many parts, which are "
        "searched for together, as those in `also` are; 0 does not. Where the model gives none, the question "
        "is searched for as it is. Not with `weights`.",
        examples=[4],
    )


class NumberedPassage(Passage):
    """What a number in brackets stands for."""

    number: int = Field(description="The number, from 1.", examples=[1])


class UnknownCitation(ResponseModel):
    """A number that the answer cites and that stands for no passage: what it says there rests on nothing."""

    number: int = Field(description="The number.", examples=[1])
    start: int = Field(description="Where the bracket begins in the answer, in characters.", examples=[56])
    end: int = Field(description="Where it ends.", examples=[59])


class CitedPassage(UnknownCitation):
    """A citation that the answer makes."""

    chunk_id: str = Field(description="The passage's id.", examples=["slow-01"])


class UsedTokens(ResponseModel):
    """What the model read and wrote."""

    input: int = Field(description="Tokens of the prompt.", examples=[812])
    output: int = Field(description="Tokens of what was written, thoughts included.", examples=[64])
    counted: bool = Field(
        description="Whether the endpoint counted them; else they are estimated.", examples=[True]
    )


class AskResponse(ResponseModel):
    """An answer, with the passages that it was written over and the citations that it makes."""

    question: str = Field(description="The question.", examples=["Why are our consumers falling behind?"])
    answer: str = Field(description="What the model wrote, as plain text.", examples=[_TEXT])
    answered: bool = Field(
        description="Whether it is an answer; false where it says that the passages do not tell, or where "
        "nothing was found and nobody was asked.",
        examples=[True],
    )
    citations: list[CitedPassage] = Field(
        description="Every citation of a passage, in the order of the text.",
    )
    unknown_citations: list[UnknownCitation] = Field(
        description="Numbers that are cited and stand for no passage.", examples=[[]]
    )
    cited: list[int] = Field(
        description="The passages that are cited, each once, in the order of their first citation.",
        examples=[[1, 2]],
    )
    passages: list[NumberedPassage] = Field(description="All passages that the model was given.")
    model: str = Field(description="Who wrote it.", examples=["openai:llama3.1"])
    prompt_version: str = Field(description="How it was asked.", examples=["cited-1"])
    finish_reason: str = Field(
        description="Why the answer ended: `stop`, `length`, another word of the model's, or `no_passages`.",
        examples=["stop"],
    )
    relevance: FoundRelevance = Field(
        description="Whether anything relevant was found; the model is told where not."
    )
    questions: list[QuestionCoverage] | None = Field(
        None,
        description="With `also` or `decompose`: `query` and the others, and how far each is covered; null "
        "where there is one question.",
        examples=[
            [
                {"text": "Why are our consumers falling behind?", "weight": 0.5, "coverage": 0.83},
                {"text": "How do I add consumers?", "weight": 0.5, "coverage": 0.71},
            ]
        ],
    )
    tokens: UsedTokens = Field(description="What the model read and wrote.")
    seconds: dict[str, float] = Field(
        description="`decompose` (if asked for), `search`, `first` (until the first words) and `total`.",
        examples=[{"search": 0.012, "first": 0.31, "total": 1.9}],
    )


EVENTS: dict[str, Any] = {
    "schema": {
        "type": "object",
        "description": "One event. `data` is JSON: of `questions`, if there are several, their coverage, of "
        "`passages` the passages, of `text` more of the text, of `answer` an AskResponse, of `error` a "
        "Problem.",
        "properties": {
            "event": {"type": "string", "enum": ["questions", "passages", "text", "answer", "error"]},
            "data": {"type": "string"},
        },
        "required": ["event", "data"],
    },
    "example": {"event": "text", "data": '{"text":"Handlers that wait"}'},
}
"""What a stream is made of, for the OpenAPI document."""


_MESSAGES = {
    "failed": ("model_unavailable", "the language model cannot be reached or fails: try again later"),
    "limited": ("model_busy", "the language model has too many requests: try again later"),
    "refused": (
        "model_refuses",
        "the language model refuses this service (key, model or address): whoever runs it has to look",
    ),
    "rejected": ("model_rejects", "the language model does not take this question with these passages"),
    "cut": ("model_broke_off", "the language model broke off in the middle of the answer"),
    "empty": ("model_silent", "the language model wrote nothing"),
}


class NotConfigured(ApiError):
    """No model was configured to write answers."""

    status, code = 501, "not_configured"
    message = (
        "this service writes no answers: whoever runs it has to set answer_model (DARTBOARD_ANSWER_MODEL); "
        "POST /api/dartboard/retrieve gives the passages"
    )


router = APIRouter(prefix="/api/dartboard", tags=["ask"], route_class=JsonRoute, dependencies=READ)


@router.post(
    "/ask",
    operation_id="ask",
    response_model=AskResponse,
    responses={
        200: {
            "description": "The answer: JSON, or with `stream` the events `questions` (of several), "
            "`passages`, `text`, …, `answer`; an `error` in their place is a problem as any other.",
            "content": {MEDIA_TYPE: EVENTS},
        }
    },
)
async def ask(body: AskRequest, service: ServiceDep) -> Response:
    """Answer a question from the passages that together say most about it, with citations.

    The language model is the one that the service was configured with; without one the answer is 501. It is
    told to use the passages alone and to say so where they do not answer. A client that leaves ends the call.
    """
    model = service.answer_model
    if model is None:
        raise NotConfigured

    async def run(send_event: SendEvent) -> dict[str, Any]:
        return await service.answer_workers.run(_ask, service, model, body, send_event)

    return await streamed(run) if body.stream else json_response(await run(lambda name, data: None))


def _ask(service: Service, model: AnswerModel, body: AskRequest, send_event: SendEvent) -> dict[str, Any]:
    """The answer as plain data, sent piece by piece."""
    options = body.search_options(service.settings)
    engine = service.engines.get(body.collection)
    check_query(engine.model, body.query, service.settings, body.also)
    spent = {}
    if body.decompose:
        began = time.perf_counter()
        options = _with_parts(service, engine, model, body, options)
        spent["decompose"] = time.perf_counter() - began
    result = search(service, engine, body.query, options)
    spent["search"] = float(result.metadata["seconds"].get("total", 0.0))
    asking = AnswerStream(
        model,
        body.query,
        numbered(result.chunks),
        spent=spent,
        relevance=result.metadata["relevance"],
        questions=result.metadata.get("questions"),
    )
    begun = False

    def begin() -> None:
        content = asking.answer.to_json()
        for name in ("questions", "passages"):
            if content[name] is not None:
                send_event(name, {name: content[name]})

    try:
        for piece in asking:
            if not begun:
                begin()
                begun = True
            if piece:
                send_event("text", {"text": piece})
    except AnswerError as error:
        service.metrics.answer(error.kind, {}, {})
        status = f" (HTTP {error.status})" if error.status else ""
        logger.error("%s gave no answer: %s%s", model.name, error.kind, status)
        code, message = _MESSAGES.get(error.kind, _MESSAGES["failed"])
        wait = 5.0 if error.retry_after is None else error.retry_after
        raise Unavailable(message, code=code, retry_after=wait) from None
    except DeadlineError:  # out of time, or the client has left
        service.metrics.answer("stopped", {}, {})
        raise
    made = asking.answer
    ended = "answered" if made.answered else "not_in_passages" if made.passages else "no_passages"
    tokens = {"input": made.tokens.input, "output": made.tokens.output}
    service.metrics.answer(ended, made.seconds, tokens)
    content = made.to_json()
    if not begun:
        begin()
    send_event("answer", content)
    return content


def _with_parts(
    service: Service, engine: Engine, model: AnswerModel, body: AskRequest, options: SearchOptions
) -> SearchOptions:
    """The options with the parts of the question; of these, none is longer than a question may be here."""
    try:
        found, problem = decomposed(model, body.query, options, body.decompose)
    except ConfigError as error:
        raise Invalid(str(error), field="decompose") from None
    if problem:  # its words are not logged: they may quote the question
        logger.warning("%s gave no sub-questions", model.name)
    given, parts = options.also, found.also[len(options.also) :]
    tokens = count_tokens(engine.model, list(parts), most=service.settings.query_tokens)
    fit = [part for part, size in zip(parts, tokens, strict=True) if size <= service.settings.query_tokens]
    return replace(found, also=(*given, *fit))
