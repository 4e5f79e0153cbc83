"""Several methods on one question, each through :meth:`DartboardRetriever.search`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from statistics import fmean
from typing import Any

from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.embeddings import EmbeddingModel
from dartboard.selection import Method
from dartboard.types import Chunk, RetrievalResult

RUNS = 5
"""A selection takes a millisecond or two; the best of so many is what the machine can do."""

_CONFIGURED = frozenset(knob.name for knob in fields(DartboardConfig))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One passage of a set, and what it brought; ``stands_for`` has its own id in it."""

    rank: int
    chunk_id: str
    theme: str
    base: str
    similarity: float
    gain: float
    coverage: float
    stands_for: list[str]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one method chose. ``bound``: no set as large covers more than ``coverage / bound``."""

    name: str
    parameters: dict[str, Any]
    picks: list[Pick]
    bound: float
    milliseconds: float

    @property
    def themes(self) -> int:
        """How many subjects the picks touch, by the corpus's own labels."""
        return len({pick.theme for pick in self.picks})

    @property
    def facts(self) -> int:
        """How many picks there are when rewordings of one passage count once."""
        return len({pick.base for pick in self.picks})

    @property
    def similarities(self) -> list[float]:
        """How close each pick is to the question."""
        return [pick.similarity for pick in self.picks]

    @property
    def coverage(self) -> float:
        """The share of what all candidates cover, by Dartboard's objective."""
        return self.picks[-1].coverage

    def as_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return asdict(self) | {
            "themes": self.themes,
            "facts": self.facts,
            "mean_similarity": fmean(self.similarities),
            "weakest_similarity": min(self.similarities),
            "coverage": self.coverage,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One question, one pool of candidates and one σ; an outcome a method, in the order given."""

    question: str
    sigma: float
    sigma_source: str
    candidates: int
    outcomes: list[Outcome]


def compare(
    question: str,
    corpus: Sequence[Chunk],
    methods: Sequence[Method],
    *,
    config: DartboardConfig,
    model: EmbeddingModel,
) -> Comparison:
    """Let every method answer the question from the same candidates."""
    retriever = DartboardRetriever(config, model)
    outcomes = []
    for method in methods:
        results = [retriever.search(question, corpus, method=method) for _ in range(RUNS)]
        outcomes.append(_outcome(method, results))
        facts = results[0].metadata
    return Comparison(
        question=question,
        sigma=facts["sigma"],
        sigma_source=facts["sigma_source"],
        candidates=facts["candidates"],
        outcomes=outcomes,
    )


def _outcome(method: Method, results: Sequence[RetrievalResult]) -> Outcome:
    facts = results[0].metadata
    return Outcome(
        name=method.name,
        parameters={key: value for key, value in facts["config"].items() if key not in _CONFIGURED},
        picks=_picks(results[0]),
        bound=facts["bound"],
        milliseconds=1000 * min(result.metadata["seconds"]["select"] for result in results),
    )


def _picks(result: RetrievalResult) -> list[Pick]:
    facts = result.metadata
    return [
        Pick(
            rank=place + 1,
            chunk_id=chunk.id,
            theme=chunk.metadata["theme"],
            base=chunk.metadata["base"],
            similarity=facts["similarity"][place],
            gain=facts["gain"][place],
            coverage=facts["coverage"][place],
            stands_for=facts["stands_for"][place],
            text=chunk.text,
        )
        for place, chunk in enumerate(result.chunks)
    ]
