"""From a question to an answer: search, write the prompt, and read what the model writes."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Unpack

from dartboard.answering.answer import INTERRUPTED, NO_PASSAGES, Answer, Tokens
from dartboard.answering.citations import find_citations
from dartboard.answering.passages import Passage, numbered
from dartboard.answering.prompts import DEFAULT_PROMPT, write_prompt
from dartboard.display.plain_text import PlainText
from dartboard.engine import Engine
from dartboard.llm.chat import Piece
from dartboard.llm.errors import AnswerError
from dartboard.llm.replies import Thoughts
from dartboard.llm.streaming import AnswerModel
from dartboard.llm.usage import estimated_tokens
from dartboard.options import SearchKeywords, SearchOptions
from dartboard.relevance import Relevance

_LONGEST = 1_000_000


class Asking:
    """One answer under way: iterate over it for the text as it comes, once.

    A piece may be empty: a sign that the model was reached. ``answer`` is what there is, at any moment; leave
    the loop early, and it is an answer that was interrupted. ``spent`` are seconds that went by before.
    ``relevance`` is the search's: where it found nothing relevant, the model is told so.
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
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.question, self.passages = question, tuple(passages)
        self._model, self._clock = model, clock
        self._relevance = relevance
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
            raise AnswerError("empty", f"{self._model.name} wrote nothing ({_why(self._finish)})")

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
) -> Asking:
    """Search, and be ready to ask; ``options`` and ``changes`` as in :meth:`Engine.search`.

    ::

        asking = ask(engine, "How do I rotate the keys?", answer_model("openai:gpt-4.1-mini"), k=8)
        for piece in asking:
            print(piece, end="", flush=True)
        asking.answer.citations
    """
    started = time.perf_counter()
    result = engine.search(question, options, **changes)
    return Asking(
        model,
        question,
        numbered(result.chunks),
        prompt_version=prompt_version,
        spent={"search": time.perf_counter() - started},
        relevance=result.metadata["relevance"],
    )


def _why(finish: str) -> str:
    if finish == "length":
        return "the limit of tokens was reached before the answer began: allow more with answer_tokens"
    return finish
