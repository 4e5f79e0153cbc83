"""From a question to an answer with citations: search, write the prompt, and read what the model writes."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Unpack

from dartboard.answering.citations import Citation, Passage, find_citations, numbered
from dartboard.answering.prompts import DEFAULT_PROMPT, NO_ANSWER, write_prompt
from dartboard.engine import Engine
from dartboard.llm.chat import AnswerModel, Piece
from dartboard.llm.errors import AnswerError
from dartboard.llm.reply_parser import Thoughts
from dartboard.llm.usage import estimated_tokens
from dartboard.plain_text import PlainText
from dartboard.relevance import Relevance
from dartboard.search_options import SearchKeywords, SearchOptions

INTERRUPTED, NO_PASSAGES = "interrupted", "no_passages"

_LONGEST = 1_000_000
"""Characters of an answer."""
_NO_TOKENS_LEFT = "the limit of tokens was reached before the answer began: allow more with answer_tokens"


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
    ``search``, ``first`` (from the question to the first words) and ``total``. ``questions`` are those that
    were searched for together, if there are several: ``text``, ``weight`` and ``coverage`` of each.
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
    questions: Sequence[Mapping[str, Any]] | None = None

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
            "unknown_citations": [
                {"number": one.number, "start": one.start, "end": one.end} for one in self.unknown
            ],
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
            "questions": None if self.questions is None else [dict(one) for one in self.questions],
            "tokens": asdict(self.tokens),
            "seconds": dict(self.seconds),
        }


class AnswerStream:
    """One answer under way: iterate over it for the text as it comes, once.

    A piece may be empty: a sign that the model was reached. ``answer`` is what there is, at any moment; leave
    the loop early, and it is an answer that was interrupted. Without passages nobody is asked.

    Args:
        model: writes the answer.
        question: what is asked.
        passages: what the answer may rest on.
        prompt_version: what the model is asked with.
        spent: seconds that went by before, by step.
        relevance: the search's; where it found nothing relevant, the model is told so.
        questions: those that were searched for together.
        clock: tells the time in seconds.

    Raises:
        AnswerError: on iteration, where there is no answer, or only a part of it.
    """

    def __init__(
        self,
        model: AnswerModel,
        question: str,
        passages: Sequence[Passage],
        *,
        prompt_version: str = DEFAULT_PROMPT,
        spent: Mapping[str, float] | None = None,
        relevance: Relevance | None = None,
        questions: Sequence[Mapping[str, Any]] | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.question, self.passages = question, tuple(passages)
        self._model, self._clock = model, clock
        self._relevance, self._questions = relevance, questions
        irrelevant = relevance is not None and relevance["verdict"] == "nothing_relevant"
        self._prompt = write_prompt(question, passages, prompt_version, irrelevant=irrelevant)
        self._spent = dict(spent or {})
        self._text: list[str] = []
        self._size = 0
        self._finish = "" if passages else NO_PASSAGES
        self._tokens: tuple[int | None, int | None] = (None, None)
        self._started: float | None = None
        self._first: float | None = None
        self._ended: float | None = None

    def __iter__(self) -> Iterator[str]:
        self._started = self._clock()
        if not self.passages:
            return
        thoughts, plain = Thoughts(), PlainText()
        stream = self._model.stream(self._prompt.text, system=self._prompt.system)
        try:
            for piece in stream:
                self._note(piece)
                yield self._kept(plain.after(thoughts.after(piece.text)))
            if rest := self._kept(plain.after(thoughts.rest()) + plain.rest()):
                yield rest
        finally:
            self._ended = self._clock()
            close = getattr(stream, "close", None)
            if close is not None:
                close()
        self._finish = self._finish or "stop"
        if not "".join(self._text).strip():
            why = _NO_TOKENS_LEFT if self._finish == "length" else self._finish
            raise AnswerError("empty", f"{self._model.name} wrote nothing ({why})")

    @property
    def answer(self) -> Answer:
        """What there is so far."""
        text = "".join(self._text)
        found = find_citations(text, self.passages)
        return Answer(
            question=self.question,
            text=text,
            citations=found.known,
            unknown=found.unknown,
            passages=self.passages,
            model=self._model.name,
            prompt_version=self._prompt.version,
            tokens=self._used(text),
            seconds=self._seconds(),
            finish_reason=self._finish or INTERRUPTED,
            relevance=self._relevance,
            questions=self._questions,
        )

    def _kept(self, clean: str) -> str:
        """The text as it may be shown, remembered."""
        if clean:
            if self._first is None:
                self._first = self._clock()
            self._text.append(clean)
            self._size += len(clean)
            if self._size > _LONGEST:
                raise AnswerError(
                    "broken", f"{self._model.name} does not stop: {self._size:,} characters came"
                )
        return clean

    def _note(self, piece: Piece) -> None:
        self._finish = piece.finish or self._finish
        before, now = self._tokens, (piece.input_tokens, piece.output_tokens)
        self._tokens = (
            now[0] if now[0] is not None else before[0],
            now[1] if now[1] is not None else before[1],
        )

    def _used(self, text: str) -> Tokens:
        if not self.passages:
            return Tokens()
        given, got = self._tokens
        prompt = self._prompt.text + self._prompt.system
        return Tokens(
            input=estimated_tokens(prompt) if given is None else given,
            output=estimated_tokens(text) if got is None else got,
            counted=given is not None and got is not None,
        )

    def _seconds(self) -> dict[str, float]:
        """Rounded to what can be measured."""
        before = sum(self._spent.values())
        seconds = dict(self._spent)
        if self._started is not None and self._first is not None:
            seconds["first"] = before + self._first - self._started
        if self._started is not None:
            ended = self._clock() if self._ended is None else self._ended
            seconds["total"] = before + ended - self._started
        return {name: round(value, 6) for name, value in seconds.items()}


def ask(
    engine: Engine,
    question: str,
    model: AnswerModel,
    options: SearchOptions | None = None,
    *,
    prompt_version: str = DEFAULT_PROMPT,
    **changes: Unpack[SearchKeywords],
) -> AnswerStream:
    """Search, and be ready to ask.

    Args:
        engine: searches.
        question: what is searched for and asked.
        model: writes the answer.
        options: as in :meth:`Engine.search`, and so are ``changes``.
        prompt_version: what the model is asked with.

    Returns:
        The answer under way; nothing is asked before it is iterated over::

            asking = ask(engine, "How do I rotate the keys?", answer_model("openai:gpt-4.1-mini"), k=8)
            for piece in asking:
                print(piece, end="", flush=True)
            asking.answer.citations
    """
    started = time.perf_counter()
    result = engine.search(question, options, **changes)
    return AnswerStream(
        model,
        question,
        numbered(result.chunks),
        prompt_version=prompt_version,
        spent={"search": time.perf_counter() - started},
        relevance=result.metadata["relevance"],
        questions=result.metadata.get("questions"),
    )
