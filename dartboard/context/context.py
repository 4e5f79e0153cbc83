"""Fill a token budget with the passages that together say most about a question.

1. Dartboard picks chunks within the budget.
2. The neighbours of these picks join the candidates: the chunks before and after them in their documents. The
   targets of the question spread to neighbours (:mod:`dartboard.selection.pool`).
3. Dartboard picks again from all of them. A chunk costs the tokens of its text with source and heading. Two
   chunks that merge into one passage save a heading and the text that they share, so the rest of a section is
   cheap; but it is picked only where it adds more per token than another candidate.
4. Overlapping and adjacent chunks merge, and the passages are put in order and numbered.

The tokens of the finished text are counted by the reader's tokenizer; while it has more than the budget, the
chunk that adds least is left out.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from dartboard.config import check_choice
from dartboard.context.formats import Format, Passage, render
from dartboard.context.merge import location_of, merge
from dartboard.context.neighbours import adjacent_pairs, read_neighbours
from dartboard.embeddings.reader_tokenizer import reader_tokenizer
from dartboard.embeddings.texts import count_tokens
from dartboard.errors import ConfigError
from dartboard.plain_text import heading_of, place_of
from dartboard.retrievers.candidates import Candidates
from dartboard.search_options import SearchKeywords, SearchOptions
from dartboard.selection.pool import with_lowest
from dartboard.selection.select import method_of
from dartboard.stores import Collection
from dartboard.types import Chunk, FloatArray, RetrievalResult

if TYPE_CHECKING:
    from dartboard.engine import Engine

Order = Literal["gain", "source", "ends"]
ORDERS: tuple[str, ...] = get_args(Order)
FORMATS: tuple[str, ...] = get_args(Format)
DEFAULT_BUDGET = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a model reads before it answers a question. ``str(context)`` is the text.

    Args:
        question: The question.
        text: The passages in the format that was asked for.
        tokens: How many tokens the text has, by the reader's tokenizer; at least one for 16 characters.
        token_budget: How many it may have.
        passages: The passages in the order of the text; an answer cites them by their numbers.
        order, format: As asked for.
        result: The chunks as they were picked, and why: gains, coverage, bound, relevance.

    Example:
        >>> from dartboard.engine import Engine
        >>> with Engine.open("handbook.dartboard") as engine:
        ...     context = engine.context("How are keys rotated?", token_budget=1500)
        ...     print(context)
    """

    question: str
    text: str
    tokens: int
    token_budget: int
    passages: tuple[Passage, ...]
    order: Order
    format: Format
    result: RetrievalResult

    def __str__(self) -> str:
        return self.text

    def citations(self, answer: str) -> dict[int, tuple[str, ...]]:
        """The chunks behind each number that an answer cites, in the order of the answer.

        Args:
            answer: What a model wrote, with citations such as ``[2]``. Numbers of no passage are ignored.

        Returns:
            Number to chunk ids.
        """
        from dartboard.answering import citations

        cited = [citations.Passage(number=passage.number, text=passage.text) for passage in self.passages]
        known = citations.find_citations(answer, cited).known
        return {one.number: self.passages[one.number - 1].chunk_ids for one in known}

    def to_json(self) -> dict[str, Any]:
        """Everything but the chunks, as JSON data."""
        explained = self.result.metadata
        return {
            "question": self.question,
            "text": self.text,
            "tokens": self.tokens,
            "token_budget": self.token_budget,
            "order": self.order,
            "format": self.format,
            "passages": [
                asdict(passage) | {"chunk_ids": list(passage.chunk_ids)} for passage in self.passages
            ],
            "coverage": explained["coverage"][-1] if self.passages else 0.0,
            "relevance": explained["relevance"],
            "seconds": explained["seconds"],
        }


def build_context(
    engine: "Engine",
    question: str,
    options: SearchOptions | None = None,
    *,
    expand: bool = True,
    order: Order = "gain",
    format: Format = "markdown",
    query_vector: FloatArray | None = None,
    **changes: Unpack[SearchKeywords],
) -> Context:
    """What :meth:`dartboard.engine.Engine.context` returns; see there."""
    if options is None:
        changes = {"token_budget": DEFAULT_BUDGET, **changes}
    options = SearchOptions.of(options, changes, "context")
    check_options(options, order, format)
    builder = _Builder(engine, question, options, order, format)
    return builder.build(expand and method_of(options.method).name == "dartboard", query_vector)


def check_options(options: SearchOptions, order: str, format: str = "markdown") -> None:
    """Raise a ``ConfigError`` unless a context can be made so."""
    check_choice("order", order, ORDERS)
    check_choice("format", format, FORMATS)
    if options.token_budget is None:
        raise ConfigError("a context needs a token_budget, such as 2000: k alone does not bound its length")


class _Builder:
    """Builds the context of one question."""

    def __init__(
        self, engine: "Engine", question: str, options: SearchOptions, order: Order, format: Format
    ) -> None:
        self._engine, self._question, self._options = engine, question, options
        self._order, self._format = order, format
        given = options.tokenizer
        self._counter = engine.model if given is None else reader_tokenizer(given)
        self._counted: dict[str, int] = {}

    def build(self, expand: bool, query_vector: FloatArray | None) -> Context:
        self._engine.selector(self._options)  # what has to be loaded is loaded before time is taken
        started = time.perf_counter()
        options = self._options
        with self._engine.first_stage(self._question, options, query_vector) as (view, found, vectors):
            scores = self._engine.ranking_scores(found, options) if len(found) else None
            result = self._choose(vectors, found, scores, expand, options.k)
            if expand and (more := self._neighbours(view, found, result.chunks)):
                found = found.followed_by(more)
                scores = None if scores is None else with_lowest(scores, len(more))
                result = self._choose(vectors, found, scores, expand, options.k)
            context = self._assembled(result)
            while context.tokens > context.token_budget:  # a text may have more tokens than its parts
                if len(result) <= len(options.must_include):
                    raise ConfigError(f"must_include alone has {context.tokens} tokens: raise token_budget")
                result = self._choose(vectors, found, scores, expand, len(result) - 1)
                context = self._assembled(result)
        return replace(context, result=self._engine.described(context.result, found, started))

    def _neighbours(self, view: Collection, found: Candidates, picks: Sequence[Chunk]) -> Candidates:
        """The neighbours of the picks that are not among the candidates, scored as the last of these."""
        known = {*found.ids, *self._options.exclude}
        near = read_neighbours(view, picks, self._engine.condition(self._options.where))
        near = [record for record in near if record.id not in known]
        lowest = float(found.scores.min()) if len(found) else 0.0
        return Candidates.from_records(near, [lowest] * len(near))

    def _choose(
        self,
        vectors: FloatArray,
        found: Candidates,
        scores: FloatArray | None,
        expand: bool,
        most: int | None,
    ) -> RetrievalResult:
        """The picks within the budget, at most so many, by what their passages cost."""
        if not len(found):
            return self._engine.choose(self._question, vectors, found, self._options)
        chunks = found.chunks()
        pairs = adjacent_pairs([location_of(chunk) for chunk in chunks])
        costs, savings, budget = self._costs(chunks, pairs)
        return self._engine.choose(
            self._question,
            vectors,
            found,
            replace(self._options, k=most, token_budget=budget),
            scores=scores,
            costs=costs,
            savings=savings,
            adjacent=pairs if expand else (),
        )

    def _costs(
        self, chunks: Sequence[Chunk], pairs: Sequence[tuple[int, int]]
    ) -> tuple[list[int], list[tuple[int, int, int]], int]:
        """The tokens of each chunk as a passage, what pairs save by merging, and the budget for these.

        Two passages in one text have fewer tokens than in two, because the marks at the ends of a text count
        once (or more, because of what separates them). With this difference d, n passages of c tokens each
        have n·c - (n - 1)·d, so c - d is charged for each, against the budget less d.
        """
        budget = self._options.token_budget or 0
        apart = [self._text([chunk]) for chunk in chunks]
        together = [self._text([chunks[one], chunks[other]]) for one, other in pairs]
        first = _passages(chunks[:1], [0.0], self._order)
        *counts, twice = self._count([*apart, *together, render(first * 2, self._format)])
        least = min(counts[: len(apart)])
        if least > budget:
            raise ConfigError(
                f"token_budget {budget} is too small: the shortest of {len(apart)} candidates has {least} "
                f"tokens with its source and heading; give {least} or more"
            )
        difference = 2 * counts[0] - twice
        charged = [max(1, count - difference) for count in counts]
        costs, merged = charged[: len(apart)], charged[len(apart) :]
        savings = [
            (one, other, max(0, costs[one] + costs[other] - tokens))
            for (one, other), tokens in zip(pairs, merged, strict=True)
        ]
        return costs, savings, max(1, budget - difference)

    def _count(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text; those that were counted before are not counted again."""
        new = [text for text in dict.fromkeys(texts) if text not in self._counted]
        self._counted |= zip(new, count_tokens(self._counter, new), strict=True)
        return [self._counted[text] for text in texts]

    def _text(self, chunks: Sequence[Chunk]) -> str:
        return render(_passages(chunks, [0.0] * len(chunks), self._order), self._format)

    def _assembled(self, result: RetrievalResult) -> Context:
        passages = _passages(result.chunks, result.scores, self._order)
        text = render(passages, self._format) if passages else ""
        return Context(
            question=self._question,
            text=text,
            tokens=self._count([text])[0] if text else 0,
            token_budget=self._options.token_budget or 0,
            passages=tuple(passages),
            order=self._order,
            format=self._format,
            result=result,
        )


def _passages(chunks: Sequence[Chunk], gains: Sequence[float], order: Order) -> list[Passage]:
    """The chunks merged, in order and numbered."""
    found = []
    for merged in merge(chunks):
        members = [chunks[at] for at in merged.chunks]
        found.append(
            Passage(
                number=0,
                text=merged.text,
                source=place_of(members[0].metadata, members[0].id),
                heading="; ".join(dict.fromkeys(filter(None, (heading_of(one.metadata) for one in members)))),
                chunk_ids=tuple(one.id for one in members),
                gain=sum(gains[at] for at in merged.chunks),
            )
        )
    places = {chunk.id: location_of(chunk) for chunk in chunks}
    found.sort(key=lambda passage: -passage.gain)  # equal gains stay in the order of picks
    if order == "ends":
        found = [*found[0::2], *reversed(found[1::2])]
    elif order == "source":
        rank: dict[Any, int] = {}
        keys = {}
        for passage in found:
            place = places[passage.chunk_ids[0]]
            document, start = (passage.chunk_ids[0], 0) if place is None else (place.document, place.start)
            keys[passage.chunk_ids] = (rank.setdefault(document, len(rank)), start)
        found.sort(key=lambda passage: keys[passage.chunk_ids])
    return [replace(passage, number=number) for number, passage in enumerate(found, start=1)]
