"""Dartboard where a reranker is expected: an existing client changes its URL and nothing else.

Requests are told apart by their bodies: ``texts`` is text-embeddings-inference, ``documents`` is Jina, and
``rank_fields`` or ``max_chunks_per_doc`` beside them is Cohere's first version; ``/v2/rerank`` is its second.
"""

from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import Discriminator, Tag
from starlette.responses import Response

from dartboard.api.auth import reader
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.rerank.cohere import CohereResponse, CohereV1Request, CohereV2Request, answer_v1, answer_v2
from dartboard.api.rerank.jina import JinaRequest, JinaResponse, answer_jina
from dartboard.api.rerank.tei import TeiRank, TeiRequest, answer_tei
from dartboard.api.service import Service, service_of

router = APIRouter(tags=["rerank"], route_class=JsonRoute, dependencies=[Depends(reader)])


def _kind(body: Any) -> str:
    """Whose shape a body has; in brackets, so that messages do not take it for a field."""
    if not isinstance(body, dict):
        return "(documents)"
    if "texts" in body:
        return "(texts)"
    return "(cohere)" if "rank_fields" in body or "max_chunks_per_doc" in body else "(documents)"


AnyRequest = Annotated[
    Annotated[TeiRequest, Tag("(texts)")]
    | Annotated[JinaRequest, Tag("(documents)")]
    | Annotated[CohereV1Request, Tag("(cohere)")],
    Discriminator(_kind),
]
AnyResponse = list[TeiRank] | JinaResponse | CohereResponse


@router.post("/rerank", operation_id="rerank", response_model=AnyResponse)
async def rerank(body: AnyRequest, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Order texts as text-embeddings-inference does, for clients of its `/rerank`.

    With `documents` instead of `texts`, the request and its answer are those of `/v1/rerank`.
    """
    return await service.run(_answer, service, body)


@router.post("/v1/rerank", operation_id="rerank_v1", response_model=AnyResponse)
async def rerank_v1(body: AnyRequest, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Order documents as Jina does; as Cohere's first version where the body is one of its requests."""
    return await service.run(_answer, service, body)


@router.post("/v2/rerank", operation_id="rerank_v2", response_model=CohereResponse)
async def rerank_v2(body: CohereV2Request, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Order documents as Cohere does, for clients of its second version."""
    return await service.run(_answer, service, body)


def _answer(service: Service, body: TeiRequest | JinaRequest | CohereV1Request | CohereV2Request) -> Response:
    if isinstance(body, TeiRequest):
        return answer(answer_tei(service, body))
    if isinstance(body, JinaRequest):
        return answer(answer_jina(service, body))
    return answer(answer_v1(service, body) if isinstance(body, CohereV1Request) else answer_v2(service, body))
