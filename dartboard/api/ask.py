"""``POST /ask``: an answer with numbered citations over the passages that together say most."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from dartboard.answering import AnswerError, Asking, numbered
from dartboard.api.answers import NotConfigured
from dartboard.api.auth import reader
from dartboard.api.event_stream import MEDIA_TYPE, Tell, streamed
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.limits import check_query
from dartboard.api.retrieve import engine_of, options_of, searched
from dartboard.api.schemas.ask import EVENTS, AskRequest, AskResponse
from dartboard.api.service import Service, service_of
from dartboard.errors import DeadlineError

router = APIRouter(
    prefix="/api/dartboard", tags=["ask"], route_class=JsonRoute, dependencies=[Depends(reader)]
)


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
async def ask(body: AskRequest, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Answer a question from the passages that together say most about it, with citations.

    The language model is the one that the service was configured with; without one the answer is 501. It is
    told to use the passages alone and to say so where they do not answer. A client that leaves ends the call.
    """
    if service.answers.model is None:
        raise NotConfigured
    run = service.answers.workers.run
    if body.stream:
        return await streamed(lambda tell: run(_ask, service, body, tell))
    return answer(await run(_ask, service, body, _unheard))


def _ask(service: Service, body: AskRequest, tell: Tell) -> dict[str, Any]:
    """The answer as plain data, told piece by piece."""
    asking = _asking(service, body)
    begun = False
    try:
        for piece in asking:
            if not begun:
                tell("passages", {"passages": asking.answer.to_json()["passages"]})
                begun = True
            if piece:
                tell("text", {"text": piece})
    except AnswerError as error:
        raise service.answers.failed(error) from None
    except DeadlineError:
        service.answers.stopped()
        raise
    whole = asking.answer
    service.answers.count(whole)
    content = whole.to_json()
    if not begun:
        tell("passages", {"passages": content["passages"]})
    tell("answer", content)
    return content


def _asking(service: Service, body: AskRequest) -> Asking:
    engine = engine_of(service, body)
    check_query(engine.model, body.query, service.settings)
    result = searched(service, engine, body.query, options_of(service, body))
    model = service.answers.model
    if model is None:  # pragma: no cover - looked at before
        raise NotConfigured
    spent = {"search": float(result.metadata["seconds"].get("total", 0.0))}
    relevance = result.metadata["relevance"]
    return Asking(model, body.query, numbered(result.chunks), spent=spent, relevance=relevance)


def _unheard(name: str, data: Any) -> None:
    """Nobody listens: the answer comes as a whole."""
