"""``POST /ask``: an answer with numbered citations over the passages that together say most.

Of an error, the log gets a word and a status; what the model's endpoint says may quote the question.
"""

import logging
import time
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from dartboard.answering import AnswerError, AnswerModel, AnswerStream, decomposed, numbered
from dartboard.answering.decomposition import MOST_PARTS
from dartboard.api.authentication import READ
from dartboard.api.endpoints.retrieve import FoundRelevance, QuestionCoverage, search
from dartboard.api.errors import ApiError, Unavailable
from dartboard.api.events import MEDIA_TYPE, SendEvent, streamed
from dartboard.api.schemas import Passage, Query, SearchRequest, json_body
from dartboard.api.service import Service, ServiceDep
from dartboard.embeddings.texts import count_tokens
from dartboard.engine import Engine
from dartboard.errors import DeadlineError
from dartboard.search_options import SearchOptions

logger = logging.getLogger(__name__)


class AskRequest(SearchRequest):
    """One question. Who answers it is the service's setting, not the request's."""

    query: Query
    stream: bool = Field(
        False, description="Whether the answer comes as server-sent events as it is written, or as JSON."
    )
    decompose: int = Field(
        0,
        ge=0,
        le=MOST_PARTS,
        description="Let the language model split the question into at most so many parts, which are "
        "searched for together, as those in `also` are. Not with `weights`.",
    )


class NumberedPassage(Passage):
    """What a number in brackets stands for."""

    number: int


class UnknownCitation(BaseModel):
    """A number that the answer cites and that stands for no passage: what it says there rests on nothing."""

    number: int
    start: int = Field(description="Where the bracket begins in the answer, in characters.")
    end: int


class CitedPassage(UnknownCitation):
    """A citation that the answer makes."""

    chunk_id: str


class UsedTokens(BaseModel):
    """What the model read and wrote; `counted` by its endpoint, else estimated."""

    input: int
    output: int
    counted: bool


class AskResponse(BaseModel):
    """An answer, with the passages that it was written over and the citations that it makes."""

    question: str
    answer: str
    answered: bool = Field(
        description="False where it says that the passages do not tell, or nobody was asked."
    )
    citations: list[CitedPassage]
    unknown_citations: list[UnknownCitation]
    cited: list[int] = Field(description="The passages that are cited, in the order of their first citation.")
    passages: list[NumberedPassage]
    model: str
    prompt_version: str
    finish_reason: str = Field(description="`stop`, `length`, another word of the model's, or `no_passages`.")
    relevance: FoundRelevance
    questions: list[QuestionCoverage] | None
    tokens: UsedTokens
    seconds: dict[str, float] = Field(description="`decompose`, `search`, `first` (words) and `total`.")


EVENTS = ("questions", "passages", "text", "answer", "error")
_STREAM = {
    "description": "JSON; or with `stream` the events `questions` (of several), `passages`, `text`, …, "
    "`answer` (an AskResponse); an `error` (a Problem) in their place.",
    "content": {
        MEDIA_TYPE: {
            "schema": {
                "type": "object",
                "description": "One event of the stream.",
                "required": ["event", "data"],
                "properties": {
                    "event": {"type": "string", "enum": list(EVENTS)},
                    "data": {"type": "string", "description": "JSON."},
                },
            }
        }
    },
}
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


router = APIRouter(prefix="/api/dartboard", tags=["ask"], dependencies=READ)


@router.post("/ask", operation_id="ask", response_model=AskResponse, responses={200: _STREAM})
async def ask(
    request: Request, service: ServiceDep, body: Annotated[AskRequest, json_body(AskRequest, line="answers")]
) -> Any:
    """Answer a question from the passages that together say most about it, with citations.

    The language model is the one that the service was configured with; without one the answer is 501. It is
    told to use the passages alone and to say so where they do not answer. A client that leaves ends the call.
    """
    model = service.answer_model
    if model is None:
        raise NotConfigured

    async def run(send_event: SendEvent) -> dict[str, Any]:
        return await service.answers.run(_ask, service, model, body, send_event)

    if body.stream:
        return await streamed(run, request.scope)
    return await run(lambda name, data: None)


def _ask(service: Service, model: AnswerModel, body: AskRequest, send_event: SendEvent) -> dict[str, Any]:
    """The answer as plain data, sent piece by piece."""
    engine = service.engines.get(body.collection)
    options = body.options(service, engine, body.query)
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
    service.metrics.answer(ended, made.seconds, {"input": made.tokens.input, "output": made.tokens.output})
    content = made.to_json()
    if not begun:
        begin()
    send_event("answer", content)
    return content


def _with_parts(
    service: Service, engine: Engine, model: AnswerModel, body: AskRequest, options: SearchOptions
) -> SearchOptions:
    """The options with the parts of the question; of these, none is longer than a question may be here."""
    found, problem = decomposed(model, body.query, options, body.decompose)
    if problem:  # its words are not logged: they may quote the question
        logger.warning("%s gave no sub-questions", model.name)
    given, parts = options.also, found.also[len(options.also) :]
    most = service.settings.query_tokens
    tokens = count_tokens(engine.model, list(parts), most=most)
    fit = [part for part, size in zip(parts, tokens, strict=True) if size <= most]
    return replace(found, also=(*given, *fit))
