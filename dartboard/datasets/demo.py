"""The demo corpus and its questions, which come with the package."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from dartboard.embeddings.vectors import Vectors
from dartboard.types import Chunk


@dataclass(frozen=True, slots=True)
class Question:
    """A question and, if known, the facets that a good result covers."""

    text: str
    wants: str = ""


@cache
def questions() -> tuple[Question, ...]:
    """The ready-made questions; the first is the main one."""
    return tuple(Question(row["question"], row["why"]) for row in json.loads(_read("demo_questions.json")))


@cache
def passages() -> tuple[dict[str, Any], ...]:
    """One dictionary per passage: id, text, theme, base (the passage that it rewords, or itself) …"""
    return tuple(json.loads(line) for line in _read("demo.jsonl").splitlines())


def texts() -> list[str]:
    """The texts to encode."""
    return [row["text"] for row in passages()]


def chunks(vectors: Vectors) -> list[Chunk]:
    """The passages with their vectors, ``(n, d)``."""
    return [
        Chunk(row["id"], row["text"], vector, {key: row[key] for key in ("theme", "base", "kind", "source")})
        for row, vector in zip(passages(), vectors, strict=True)
    ]


def _read(name: str) -> str:
    return resources.files("dartboard.data").joinpath(name).read_text(encoding="utf-8")
