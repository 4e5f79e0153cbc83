"""The shape of text-embeddings-inference: ``texts`` in, a bare array out."""

import math
from typing import Any, Literal

from pydantic import Field

from dartboard.api.rerank.common import Explained, RerankOptions, rerank
from dartboard.api.schemas.common import Answer
from dartboard.api.service import Service

_TEXTS = ["Consumers fall behind when messages take long to handle.", "Add partitions."]


class TeiRequest(RerankOptions):
    """A question and texts, as text-embeddings-inference takes them."""

    texts: list[str] = Field(min_length=1, description="The texts to order.", examples=[_TEXTS])
    raw_scores: bool | None = Field(
        None,
        description="Whether scores are logits, ln(s / (1 - s)), instead of numbers in (0, 1).",
        examples=[False],
    )
    return_text: bool | None = Field(None, description="Whether results repeat their text.", examples=[True])
    truncate: bool | None = Field(
        None,
        description="Whether texts longer than the model reads are cut (as when it is left out), or refused.",
        examples=[True],
    )
    truncation_direction: Literal["right", "Right"] | None = Field(
        None, description="Texts are cut at their end.", examples=["right"]
    )


class TeiRank(Answer):
    """One text in its place."""

    index: int = Field(description="Its position in the request.", examples=[0])
    score: float = Field(description="Strictly decreasing along the results.", examples=[0.71])
    text: str | None = Field(None, description="With `return_text`.", examples=[_TEXTS[0]])
    dartboard: Explained = Field(
        description="Why it stands here.",
        examples=[{"gain": 0.62, "coverage": 0.62, "similarity": 0.71, "stands_for": [0]}],
    )


def answer_tei(service: Service, body: TeiRequest) -> list[dict[str, Any]]:
    """Results, best first."""
    made = rerank(service, body, body.texts, field="texts", refuse_long=body.truncate is False)
    return [
        {
            "index": rank.index,
            "score": math.log(rank.score / (1.0 - rank.score)) if body.raw_scores else rank.score,
            **({"text": body.texts[rank.index]} if body.return_text else {}),
            "dartboard": rank.explained,
        }
        for rank in made.ranks
    ]
