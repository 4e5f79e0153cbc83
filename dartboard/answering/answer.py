"""An answer with everything that belongs to it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dartboard.answering.citations import Citation
from dartboard.answering.passages import Passage
from dartboard.answering.prompts import NO_ANSWER
from dartboard.relevance import Relevance

INTERRUPTED, NO_PASSAGES = "interrupted", "no_passages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens of the prompt and of what was written, thoughts included; not ``counted``: estimated here."""

    input: int = 0
    output: int = 0
    counted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """``text`` with its citations; those of passages that do not exist stand apart, in ``unknown``.

    ``finish_reason`` is the endpoint's: ``stop``, ``length`` where the limit of tokens cut it, or another
    word; ``interrupted`` where it was left before its end, ``no_passages`` where nothing was found and nobody
    asked. ``relevance`` says whether the search found anything relevant, where there was one. ``seconds``:
    ``search``, ``first`` (from the question to the first words) and ``total``.
    """

    question: str
    text: str
    citations: tuple[Citation, ...]
    unknown: tuple[Citation, ...]
    passages: tuple[Passage, ...]
    model: str
    prompt_version: str
    tokens: Tokens
    seconds: Mapping[str, float]
    finish_reason: str
    relevance: Relevance | None = None

    @property
    def cited(self) -> tuple[int, ...]:
        """The passages that are cited, each once, in the order of their first citation."""
        return tuple(dict.fromkeys(citation.number for citation in self.citations))

    @property
    def answered(self) -> bool:
        """Whether it is an answer: something was written, and not that the passages do not tell."""
        return bool(self.text.strip()) and not self.text.lstrip().startswith(NO_ANSWER)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for programs."""
        return {
            "question": self.question,
            "answer": self.text,
            "answered": self.answered,
            "citations": [asdict(citation) for citation in self.citations],
            "unknown_citations": [_place(citation) for citation in self.unknown],
            "cited": list(self.cited),
            "passages": [
                {
                    "number": passage.number,
                    "chunk_id": passage.chunk_id,
                    "text": passage.text,
                    "metadata": dict(passage.metadata),
                }
                for passage in self.passages
            ],
            "model": self.model,
            "prompt_version": self.prompt_version,
            "finish_reason": self.finish_reason,
            "relevance": self.relevance,
            "tokens": asdict(self.tokens),
            "seconds": dict(self.seconds),
        }


def _place(citation: Citation) -> dict[str, int]:
    return {"number": citation.number, "start": citation.start, "end": citation.end}
