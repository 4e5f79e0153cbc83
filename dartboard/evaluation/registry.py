"""Systems by name, for ``--systems``.

==========================  =============================================================
cosine                      nearest neighbours
mmr-W                       MMR with relevance weight W
dedup-T                     nearest neighbours, skipping those within cosine T of a pick
random                      random candidates, the mean of ten seeds
pyversity-dpp, -cover       pyversity's strategies, if it is installed
dartboard                   Dartboard on vectors; σ from each question's candidates, near-duplicates removed
dartboard-S                 the same with σ = S
dartboard-hybrid            a pair scorer for the question, vectors between passages
dartboard-crossencoder      a pair scorer for both
oracle                      perfect retrieval: the upper bound
dense, bm25, colbert        retrievers over the whole corpus, by any name that
hybrid, hybrid:0.6, rrf …   :mod:`dartboard.retrievers.registry` knows, except multi-vector ones
run:FILE                    a TREC run file of any other retriever
NAME                        the selector of a plug-in (:mod:`dartboard.plugins`)
==========================  =============================================================

A system that cannot run (no pyversity, no real text) is skipped, and the reason is reported.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from dartboard import plugins
from dartboard.config import DartboardConfig
from dartboard.datasets.synthetic import has_made_up_texts
from dartboard.datasets.trec import read_run
from dartboard.embeddings import EmbeddingModel, LateInteraction, default_model
from dartboard.embeddings.base import PairScorer
from dartboard.errors import ConfigError
from dartboard.evaluation.baselines import (
    RETRIEVERS,
    Oracle,
    PairScorerSystem,
    Pyversity,
    RandomSystem,
    RecordedRun,
    RetrieverSystem,
    SelectionSystem,
    System,
    is_retriever,
)
from dartboard.evaluation.judgements import Judgements
from dartboard.selection import MMR, Dartboard, NearDuplicateFilter, TopK
from dartboard.selection.select import method_of
from dartboard.types import Dataset

MMR_WEIGHTS = (0.3, 0.5, 0.7, 0.9)
DEDUP_THRESHOLDS = (0.80, 0.85, 0.90, 0.95)

QUICK = (
    "cosine",
    *(f"mmr-{weight}" for weight in MMR_WEIGHTS),
    *(f"dedup-{threshold:.2f}" for threshold in DEDUP_THRESHOLDS),
    "pyversity-dpp",
    "pyversity-cover",
    "random",
    "dartboard",
    "oracle",
)
"""All baselines, and Dartboard on vectors, without a model: about a second per hundred questions."""

EVERYTHING = (*QUICK[:-1], "dartboard-hybrid", "dartboard-crossencoder", "oracle")
"""Also the variants that read texts: a second or more per question."""

GROUPS = {"quick": QUICK, "all": EVERYTHING}

READING = ("dartboard-hybrid", "dartboard-crossencoder")
"""Systems that read texts with a model."""


@dataclass(slots=True)
class AvailableSystems:
    """The systems that can run, and why others cannot."""

    systems: list[System] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)


def expand(names: Iterable[str]) -> list[str]:
    """Names with groups expanded, each once."""
    spelled = [one for name in names for one in GROUPS.get(name.strip(), (name.strip(),)) if one]
    return list(dict.fromkeys(spelled))


def choose(
    names: Sequence[str | System],
    dataset: Dataset,
    judgements: Judgements,
    *,
    scorer: Callable[[], PairScorer] | None = None,
    model: Callable[[], EmbeddingModel] | None = None,
    seed: int = 0,
) -> AvailableSystems:
    """Systems for a data set.

    ``scorer`` makes the pair scorer, by default late interaction; ``model`` returns the model that embedded
    the data set, for retrievers, by default the default model. ``seed`` is that of random systems.
    """
    chosen = AvailableSystems()
    shared = cache(scorer or (lambda: LateInteraction(default_model())))
    encoder = cache(model or default_model)
    for given in names:
        for name in expand([given]) if isinstance(given, str) else [given]:
            if not isinstance(name, str):
                chosen.systems.append(name)
            elif reason := _why_not(name, dataset, encoder):
                chosen.skipped[name] = reason
            elif is_retriever(name):
                chosen.systems.append(RetrieverSystem(name, dataset, encoder()))
            else:
                chosen.systems.append(_make(name, judgements, shared, seed))
    return chosen


def reads_texts(names: Iterable[str]) -> bool:
    """Whether any of the systems needs a model."""
    return any(name in READING for name in expand(names))


def check_names(names: Iterable[str]) -> None:
    """Reject unknown names before anything runs."""
    for name in expand(names):
        head, _, number = name.rpartition("-")
        if name in EVERYTHING or is_retriever(name):
            continue
        if name.startswith("run:"):
            if not Path(name.removeprefix("run:")).is_file():
                raise ConfigError(f"{name!r}: there is no such file")
        elif head in _NUMBERED:
            try:
                _NUMBERED[head](name, _number(number))
            except ConfigError as error:
                raise ConfigError(f"{name!r}: {error}") from None
        elif name not in (added := plugins.names("selector")):
            raise ConfigError(
                f"unknown system {name!r}: choose from "
                f"{', '.join((*GROUPS, *EVERYTHING, *RETRIEVERS, *added))}, dartboard-SIGMA, or run:FILE"
            )


def _make(name: str, judgements: Judgements, scorer: Callable[[], PairScorer], seed: int) -> System:
    if name.startswith("run:"):
        path = Path(name.removeprefix("run:"))
        return RecordedRun(path.stem, {q: list(scores) for q, scores in read_run(path).items()})
    plain: Mapping[str, Callable[[], System]] = {
        "cosine": lambda: SelectionSystem("cosine", TopK()),
        "random": lambda: RandomSystem(tuple(range(10 * seed, 10 * seed + 10))),
        "oracle": lambda: Oracle(judgements),
        "pyversity-dpp": lambda: Pyversity("dpp"),
        "pyversity-cover": lambda: Pyversity("cover"),
        "dartboard": lambda: SelectionSystem("dartboard", Dartboard()),
        "dartboard-hybrid": lambda: PairScorerSystem("hybrid", scorer()),
        "dartboard-crossencoder": lambda: PairScorerSystem("crossencoder", scorer()),
    }
    if name in plain:
        return plain[name]()
    check_names([name])
    head, _, number = name.rpartition("-")
    if head not in _NUMBERED:
        return SelectionSystem(name, method_of(name))
    return _NUMBERED[head](name, _number(number))


_NUMBERED: Mapping[str, Callable[[str, float], System]] = {
    "mmr": lambda name, weight: SelectionSystem(name, MMR(relevance_weight=weight)),
    "dedup": lambda name, threshold: SelectionSystem(name, NearDuplicateFilter(threshold=threshold)),
    "dartboard": lambda name, sigma: SelectionSystem(name, Dartboard(), DartboardConfig(sigma=sigma).sigma),
}


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError("after the last - comes a number, as in mmr-0.7") from None


def _why_not(name: str, dataset: Dataset, model: Callable[[], EmbeddingModel]) -> str | None:
    """Why a system cannot run on a data set, or None."""
    if name.startswith("pyversity-") and find_spec("pyversity") is None:
        return "pyversity is not installed: pip install pyversity"
    if (name in READING or is_retriever(name)) and has_made_up_texts(dataset):
        return "it reads texts, and the texts of this data set are made up"
    if is_retriever(name) and dataset.metadata.get("model", {}).get("fingerprint") != model().fingerprint:
        return f"the questions are encoded by {model().name}, and the vectors of this data set are not"
    return None
