"""Dartboard where a reranker is expected: an existing client changes its URL and nothing else.

Requests are told apart by their bodies: ``texts`` is text-embeddings-inference, ``documents`` is Jina, and
``rank_fields`` or ``max_chunks_per_doc`` beside them is Cohere's first version; ``/v2/rerank`` is its second.
All embed what was sent with the service's own model and let Dartboard order it.
"""

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import orjson
from fastapi import APIRouter
from starlette.responses import Response

from dartboard.api.endpoints.rerank_schemas import (
    AnyRequest,
    AnyResponse,
    CohereResponse,
    CohereV1Request,
    CohereV2Request,
    Document,
    JinaRequest,
    RerankOptions,
    TeiRequest,
)
from dartboard.api.endpoints.rerank_scores import decreasing, novelty
from dartboard.api.errors import Invalid, TooLarge
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.search_request import at_most, check_query
from dartboard.api.service import Service, TheService
from dartboard.deadline import check
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens
from dartboard.near_duplicates import candidate_groups
from dartboard.selection import Limits, Selection, from_embeddings
from dartboard.selection.methods import method_of
from dartboard.types import FloatArray

router = APIRouter(tags=["rerank"], route_class=JsonRoute, dependencies=READ)

MOST_TEXTS = 500
"""Texts are encoded while the client waits, so fewer than ``/select`` takes as vectors. Measured: 60 ms of
processor time for 120 words with the default model."""
_LETTERS_A_TOKEN = 64
"""A text is looked at no further than this: the words of all of it would take ten times its size."""


@router.post("/rerank", operation_id="rerank", response_model=AnyResponse)
async def rerank(body: AnyRequest, service: TheService) -> Response:
    """Order texts as text-embeddings-inference does, for clients of its `/rerank`.

    With `documents` instead of `texts`, the request and its answer are those of `/v1/rerank`.
    """
    return await service.run(_rerank, service, body)


@router.post("/v1/rerank", operation_id="rerank_v1", response_model=AnyResponse)
async def rerank_v1(body: AnyRequest, service: TheService) -> Response:
    """Order documents as Jina does; as Cohere's first version where the body is one of its requests."""
    return await service.run(_rerank, service, body)


@router.post("/v2/rerank", operation_id="rerank_v2", response_model=CohereResponse)
async def rerank_v2(body: CohereV2Request, service: TheService) -> Response:
    """Order documents as Cohere does, for clients of its second version."""
    return await service.run(_rerank, service, body)


def _rerank(service: Service, body: TeiRequest | JinaRequest | CohereV1Request | CohereV2Request) -> Response:
    if isinstance(body, TeiRequest):
        return answer(_as_tei(service, body))
    if isinstance(body, CohereV1Request):
        texts = _fields_of(body.documents, body.rank_fields or ("text",))
    else:
        texts = [_text_of(document, at) for at, document in enumerate(body.documents)]
    most = body.max_tokens_per_doc if isinstance(body, CohereV2Request) else None
    ranking = _ranked(service, body, texts, field="documents", top_n=body.top_n, most_tokens=most)
    if isinstance(body, JinaRequest):
        return answer(_as_jina(ranking, body))
    return answer(_as_cohere(ranking, body, "1" if isinstance(body, CohereV1Request) else "2"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    """The texts that were asked for, best first: index, score and explanation of each."""

    ranks: list[tuple[int, float, dict[str, Any]]]
    tokens: int
    made: dict[str, Any]
    """What made the order, as responses say it."""


def _as_tei(service: Service, body: TeiRequest) -> list[dict[str, Any]]:
    ranking = _ranked(service, body, body.texts, field="texts", refuse_long=body.truncate is False)
    return [
        {
            "index": index,
            "score": math.log(score / (1.0 - score)) if body.raw_scores else score,
            **({"text": body.texts[index]} if body.return_text else {}),
            "dartboard": explained,
        }
        for index, score, explained in ranking.ranks
    ]


def _as_jina(ranking: _Ranking, body: JinaRequest) -> dict[str, Any]:
    return {
        "model": ranking.made["model"],
        "usage": {"total_tokens": ranking.tokens},
        "results": _results(ranking, None if body.return_documents is False else body.documents),
        "dartboard": ranking.made,
    }


def _as_cohere(ranking: _Ranking, body: CohereV1Request | CohereV2Request, version: str) -> dict[str, Any]:
    meta: dict[str, Any] = {
        "api_version": {"version": version},
        "billed_units": {"search_units": 1},
        "tokens": {"input_tokens": ranking.tokens},
    }
    if truncated := ranking.made["truncated"]:
        meta["warnings"] = [f"{truncated} of the documents are longer than the model reads and were cut"]
    return {
        "id": str(uuid.uuid4()),
        "results": _results(ranking, body.documents if body.return_documents else None),
        "meta": meta,
        "dartboard": ranking.made,
    }


def _results(ranking: _Ranking, documents: Sequence[Document] | None) -> list[dict[str, Any]]:
    """Jina's and Cohere's results; with documents, each repeats its own."""
    results = []
    for index, score, explained in ranking.ranks:
        result: dict[str, Any] = {"index": index, "relevance_score": score, "dartboard": explained}
        if documents is not None:
            document = documents[index]
            result["document"] = {"text": document} if isinstance(document, str) else document
        results.append(result)
    return results


def _text_of(document: Document, at: int) -> str:
    text = document if isinstance(document, str) else document.get("text")
    if not isinstance(text, str):
        raise Invalid(
            "an object among the documents needs a text, which is a string", field=f"documents.{at}.text"
        )
    return text


def _fields_of(documents: Sequence[Document], fields: Sequence[str]) -> list[str]:
    """The text of each document; of an object, the values of ``fields`` that it has, one a line."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else orjson.dumps(value).decode()

    return [
        document
        if isinstance(document, str)
        else "\n".join(text(document[name]) for name in fields if name in document)
        for document in documents
    ]


def _ranked(
    service: Service,
    options: RerankOptions,
    texts: Sequence[str],
    *,
    field: str,
    top_n: int | None = None,
    most_tokens: int | None = None,
    refuse_long: bool = False,
) -> _Ranking:
    """Order texts; those without a word come last. ``field`` is what a request calls the texts."""
    at_most(field, len(texts), min(MOST_TEXTS, service.settings.vectors), " texts")
    model = service.engines.model
    check_query(model, options.query, service.settings)
    where = [at for at, text in enumerate(texts) if text.strip()]
    worded, tokens, truncated = _readable(model, [texts[at] for at in where], most_tokens)
    if refuse_long and truncated:
        raise TooLarge(
            f"a text has more tokens than the model reads: send shorter {field}, or truncate: true"
        )
    wanted = len(texts) if top_n is None else min(top_n, len(texts))
    query = model.encode_query(options.query)
    tokens += count_tokens(model, [options.query])[0]
    picks, sigma = [], None
    if where:
        vectors = _encoded(model, worded)
        groups = candidate_groups(vectors, worded)
        pool = from_embeddings(query, vectors, sigma=options.sigma, model_sigma=model.sigma, groups=groups)
        selection = method_of(options.method).select(pool, Limits(k=min(wanted, len(where))))
        picks, sigma = _picks(selection, vectors, where), selection.sigma.value
    # What was not picked (texts without a word, near-duplicates that a filter leaves out) follows in order.
    picked = {index for index, _, _ in picks}
    nothing = {"gain": 0.0, "coverage": picks[-1][2]["coverage"] if picks else 0.0, "similarity": 0.0}
    picks += [(at, 0.0, {**nothing, "stands_for": []}) for at in range(len(texts)) if at not in picked]
    picks = picks[:wanted]
    scores = decreasing(np.array([raw for _, raw, _ in picks], dtype=np.float64))
    return _Ranking(
        ranks=[(index, score, why) for (index, _, why), score in zip(picks, scores, strict=True)],
        tokens=tokens,
        made={"model": model.name, "method": options.method, "sigma": sigma, "truncated": truncated},
    )


def _readable(model: EmbeddingModel, texts: list[str], most_tokens: int | None) -> tuple[list[str], int, int]:
    """The texts, cut where the caller wants it; tokens in all, and how many texts the model cuts."""
    count = partial(count_tokens, model)
    counts = count(texts)
    if most_tokens is not None:
        texts = [
            beginning(text, most_tokens, count) if length > most_tokens else text
            for text, length in zip(texts, counts, strict=True)
        ]
        counts = [min(length, most_tokens) for length in counts]
    reads = getattr(model, "max_tokens", None)
    return texts, sum(counts), 0 if reads is None else sum(length > reads for length in counts)


def beginning(text: str, most: int, count: Callable[[Sequence[str]], list[int]]) -> str:
    """As many words of a text as have at most ``most`` tokens; the first word in any case."""
    words = text[: _LETTERS_A_TOKEN * most].split()
    low, high = 1, len(words)
    while low < high:
        check()
        middle = (low + high + 1) // 2
        if count([" ".join(words[:middle])])[0] <= most:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])


def _encoded(model: EmbeddingModel, texts: list[str]) -> FloatArray:
    """One row a text; equal texts are encoded once, and time is looked at between batches."""
    rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
    vectors = model.encode_documents(list(rows), progress=lambda _: check())
    return np.asarray(vectors[[rows[text] for text in texts]])


def _picks(
    selection: Selection, vectors: FloatArray, where: list[int]
) -> list[tuple[int, float, dict[str, Any]]]:
    """Index, score before it is made to decrease, and explanation of each pick."""
    raw = np.maximum(selection.similarity, 0.0)
    if selection.method == "dartboard":
        raw = raw * novelty(vectors[selection.indices], selection.sigma.value)
    return [
        (
            where[at],
            float(raw[rank]),
            {
                "gain": float(selection.gains[rank]),
                "coverage": float(selection.coverage[rank]),
                "similarity": float(selection.similarity[rank]),
                "stands_for": [where[one] for one in selection.stands_for[rank].tolist()],
            },
        )
        for rank, at in enumerate(selection.indices.tolist())
    ]
