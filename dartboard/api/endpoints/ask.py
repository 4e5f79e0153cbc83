"""``POST /ask``: an answer with numbered citations over the passages that together say most."""

from typing import Any

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from dartboard.answering import AnswerError, AnswerModel, AnswerStream, numbered
from dartboard.api.answers import NotConfigured
from dartboard.api.endpoints.retrieve import engine_of, options_of, searched
from dartboard.api.endpoints.retrieve_schemas import FoundRelevance, Query, SearchRequest
from dartboard.api.event_stream import MEDIA_TYPE, SendEvent, streamed
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.limits import check_query
from dartboard.api.schemas import Answer, Metadata
from dartboard.api.service import Service, TheService
from dartboard.errors import DeadlineError

_TEXT = "Handlers that wait for something slow hold everything up [1]. Adding consumers moves partitions [2]."


class AskRequest(SearchRequest):
    """One question. Who answers it is the service's setting, not the request's."""

    query: Query
    stream: bool = Field(
        True,
        description="Whether the answer comes as server-sent events as it is written, or as JSON at its end.",
        examples=[False],
    )


class NumberedPassage(Answer):
    """What a number in brackets stands for."""

    number: int = Field(description="The number, from 1.", examples=[1])
    chunk_id: str = Field(description="The passage's id.", examples=["slow-01"])
    text: str = Field(description="The passage.", examples=["Consumers fall behind, as a rule, because …"])
    metadata: Metadata = Field(
        description="What is known of the passage.",
        examples=[{"source": "runbook/consumers-falling-behind.md", "theme": "slow handlers"}],
    )


class CitedPassage(Answer):
    """A citation that the answer makes."""

    number: int = Field(description="The passage's number.", examples=[1])
    start: int = Field(description="Where the bracket begins in the answer, in characters.", examples=[56])
    end: int = Field(description="Where it ends.", examples=[59])
    chunk_id: str = Field(description="The passage's id.", examples=["slow-01"])


class UnknownCitation(Answer):
    """A number that the answer cites and that stands for no passage: what it says there rests on nothing."""

    number: int = Field(description="The number.", examples=[9])
    start: int = Field(description="Where the bracket begins in the answer, in characters.", examples=[80])
    end: int = Field(description="Where it ends.", examples=[83])


class UsedTokens(Answer):
    """What the model read and wrote."""

    input: int = Field(description="Tokens of the prompt.", examples=[812])
    output: int = Field(description="Tokens of what was written, thoughts included.", examples=[64])
    counted: bool = Field(
        description="Whether the endpoint counted them; else they are estimated.", examples=[True]
    )


class AskResponse(Answer):
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
        examples=[[{"number": 1, "start": 56, "end": 59, "chunk_id": "slow-01"}]],
    )
    unknown_citations: list[UnknownCitation] = Field(
        description="Numbers that are cited and stand for no passage.", examples=[[]]
    )
    cited: list[int] = Field(
        description="The passages that are cited, each once, in the order of their first citation.",
        examples=[[1, 2]],
    )
    passages: list[NumberedPassage] = Field(
        description="All passages that the model was given.", examples=[[]]
    )
    model: str = Field(description="Who wrote it.", examples=["openai:llama3.1"])
    prompt_version: str = Field(description="How it was asked.", examples=["cited-1"])
    finish_reason: str = Field(
        description="Why the answer ended: `stop`, `length`, another word of the model's, or `no_passages`.",
        examples=["stop"],
    )
    relevance: FoundRelevance = Field(
        description="Whether anything relevant was found; the model is told where not.", examples=[]
    )
    tokens: UsedTokens = Field(description="What the model read and wrote.", examples=[])
    seconds: dict[str, float] = Field(
        description="`search`, `first` (until the first words) and `total`.",
        examples=[{"search": 0.012, "first": 0.31, "total": 1.9}],
    )


EVENTS: dict[str, Any] = {
    "schema": {
        "type": "object",
        "description": "One event. `data` is JSON: of `passages` the passages, of `text` more of the text, "
        "of `answer` an AskResponse, of `error` a Problem.",
        "properties": {
            "event": {"type": "string", "enum": ["passages", "text", "answer", "error"]},
            "data": {"type": "string"},
        },
        "required": ["event", "data"],
    },
    "example": {"event": "text", "data": '{"text":"Handlers that wait"}'},
}
"""What a stream is made of, for the OpenAPI document."""


router = APIRouter(prefix="/api/dartboard", tags=["ask"], route_class=JsonRoute, dependencies=READ)


@router.post(
    "/ask",
    operation_id="ask",
    response_model=AskResponse,
    responses={
        200: {
            "description": "The answer: JSON, or with `stream` the events `passages`, `text`, …, `answer`; "
            "an `error` in their place is a problem as any other.",
            "content": {MEDIA_TYPE: EVENTS},
        }
    },
)
async def ask(body: AskRequest, service: TheService) -> Response:
    """Answer a question from the passages that together say most about it, with citations.

    The language model is the one that the service was configured with; without one the answer is 501. It is
    told to use the passages alone and to say so where they do not answer. A client that leaves ends the call.
    """
    model = service.answers.model
    if model is None:
        raise NotConfigured

    async def run(send_event: SendEvent) -> dict[str, Any]:
        return await service.answers.workers.run(_ask, service, model, body, send_event)

    return await streamed(run) if body.stream else answer(await run(lambda name, data: None))


def _ask(service: Service, model: AnswerModel, body: AskRequest, send_event: SendEvent) -> dict[str, Any]:
    """The answer as plain data, sent piece by piece."""
    engine = engine_of(service, body)
    check_query(engine.model, body.query, service.settings)
    result = searched(service, engine, body.query, options_of(service, body))
    asking = AnswerStream(
        model,
        body.query,
        numbered(result.chunks),
        spent={"search": float(result.metadata["seconds"].get("total", 0.0))},
        relevance=result.metadata["relevance"],
    )
    begun = False
    try:
        for piece in asking:
            if not begun:
                send_event("passages", {"passages": asking.answer.to_json()["passages"]})
                begun = True
            if piece:
                send_event("text", {"text": piece})
    except AnswerError as error:
        raise service.answers.failed(error) from None
    except DeadlineError:
        service.answers.stopped()
        raise
    service.answers.count(asking.answer)
    content = asking.answer.to_json()
    if not begun:
        send_event("passages", {"passages": content["passages"]})
    send_event("answer", content)
    return content
