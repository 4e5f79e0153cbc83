"""Whether a search found anything relevant: the best similarity compared with typical ones of the model.

A cosine means little by itself: for unrelated texts one model gives .02, another .75. So every model is
measured once on sixteen questions about unrelated topics, each with one passage that answers it
(:data:`PROBES`):

    unrelated   mean cosine of a question and passages that answer other questions
    related     mean cosine of a question and the passage that answers it
    threshold   unrelated + SHARE * (related - unrelated)

Nothing relevant was found if the best candidate is below the threshold. Results are returned anyway. The two
levels of the default model are known; those of other models are measured when a collection is created and
stored in its manifest. ``benchmarks/relevance.py`` measures how often the rule is right.
"""

from typing import Literal, NamedTuple, TypedDict

import numpy as np

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.descriptions import MINILM, known_description
from dartboard.retrievers.base import cosines
from dartboard.types import FloatArray
from dartboard.utils import unit_rows

SHARE = 0.5
"""Position of the threshold between ``unrelated`` (0) and ``related`` (1)."""

Verdict = Literal["relevant", "nothing_relevant", "unknown"]


class SimilarityLevels(NamedTuple):
    """Mean cosine of a question with passages on other topics, and with the passage that answers it."""

    unrelated: float
    related: float


_KNOWN = {MINILM.name: SimilarityLevels(unrelated=0.02, related=0.61)}


class Relevance(TypedDict):
    """The type of ``result.metadata["relevance"]``.

    ``verdict`` is ``unknown`` if the model was not measured; ``threshold`` and both levels are None then.
    ``best_similarity`` is the highest cosine of a candidate to the query; None without candidates.
    ``message`` is a sentence if nothing relevant was found, and empty otherwise.
    """

    verdict: Verdict
    message: str
    best_similarity: float | None
    threshold: float | None
    unrelated: float | None
    related: float | None


PROBES: tuple[tuple[str, str], ...] = (
    (
        "How long does an egg boil?",
        "Leave eggs in boiling water for six minutes for a soft yolk, for ten minutes for a hard one.",
    ),
    (
        "Which planet has the largest moon?",
        "Ganymede, a moon of Jupiter, is the largest moon in the Solar System.",
    ),
    (
        "How can a tenant end a lease early?",
        "A tenant may terminate the rental contract with the landlord's consent or by paying a penalty.",
    ),
    (
        "What lowers high blood pressure?",
        "Less salt, regular exercise and prescribed medication reduce hypertension in most patients.",
    ),
    (
        "How do I undo the last commit?",
        "To revert the most recent change in the repository, run git reset or create a revert commit.",
    ),
    (
        "When do tomato seedlings go outside?",
        "Plant young tomatoes in the garden once the danger of frost has passed and nights stay mild.",
    ),
    (
        "How does compound interest work?",
        "Interest is added to the savings, so that later interest is earned on the larger balance.",
    ),
    (
        "Who won the first football World Cup?",
        "Uruguay won the inaugural FIFA tournament in 1930, beating Argentina in the final.",
    ),
    (
        "How do I tune a guitar?",
        "Adjust each string with its peg until the six notes match E, A, D, G, B and E.",
    ),
    (
        "Why does iron rust?",
        "Iron reacts with oxygen and moisture and forms iron oxide, a flaky red-brown layer.",
    ),
    (
        "What may I take in cabin luggage?",
        "Airlines allow one small bag on board; liquids must be in containers of at most 100 ml.",
    ),
    (
        "How often should engine oil be changed?",
        "Most cars need fresh motor oil and a new filter every 10,000 to 15,000 kilometres.",
    ),
    (
        "Why does my cat scratch the sofa?",
        "Cats claw furniture to sharpen their claws and mark territory; a scratching post helps.",
    ),
    (
        "When did the Roman Empire fall?",
        "The Western Roman Empire ended in 476, when Odoacer deposed the last emperor.",
    ),
    (
        "How are hurricanes formed?",
        "Tropical storms grow over warm oceans, where rising moist air draws in strong winds.",
    ),
    (
        "How does a young company win customers?",
        "Startups grow by referrals, advertising and a product that solves a clear problem.",
    ),
)
"""Questions, each with the only passage that answers it."""


def measure_levels(model: EmbeddingModel) -> SimilarityLevels | None:
    """Measure the levels of a model with :data:`PROBES`, in two calls.

    None if its vectors do not separate answers from other text (``related`` is not above ``unrelated``).
    """
    questions = unit_rows(model.encode_queries([question for question, _ in PROBES]))
    answers = unit_rows(model.encode_documents([passage for _, passage in PROBES]))
    similarity = questions @ answers.T
    own = np.eye(len(PROBES), dtype=bool)
    unrelated, related = float(similarity[~own].mean()), float(similarity[own].mean())
    return SimilarityLevels(unrelated, related) if related > unrelated else None


def known_levels(model: EmbeddingModel) -> SimilarityLevels | None:
    """The known levels of a model by its name; None for any other."""
    description = known_description(model.name)
    return _KNOWN.get(description.name) if description else None


def assess(query: FloatArray, vectors: FloatArray, levels: SimilarityLevels | None) -> Relevance:
    """Assess the relevance of the best of several passages.

    Args:
        query: ``(d,)``, any length but 0; for several questions ``(m, d)``, and the best for any counts.
        vectors: ``(n, d)``, one row per candidate; n may be 0.
        levels: The levels of the model that made the vectors; None if unknown.
    """
    best = None
    if len(vectors):
        best = max(float(cosines(question, vectors).max()) for question in np.atleast_2d(query))
    return assess_best(best, levels)


def assess_best(best: float | None, levels: SimilarityLevels | None) -> Relevance:
    """:func:`assess` where the best cosine of a passage to a question is known; None without passages."""
    threshold = None if levels is None else levels.unrelated + SHARE * (levels.related - levels.unrelated)
    verdict: Verdict = "relevant"
    message = ""
    if best is None:
        verdict, message = "nothing_relevant", "Nothing relevant found: there is no candidate."
    elif threshold is None:
        verdict = "unknown"
    elif best < threshold:
        verdict = "nothing_relevant"
        message = (
            f"Nothing relevant found: the best candidate's similarity to the question is {best:.2f}, and "
            f"with this model passages below {threshold:.2f} are mostly about something else."
        )
    return Relevance(
        verdict=verdict,
        message=message,
        best_similarity=best,
        threshold=threshold,
        unrelated=None if levels is None else levels.unrelated,
        related=None if levels is None else levels.related,
    )
