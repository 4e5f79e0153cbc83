"""From cases and a corpus to raw candidates: each question with contexts that nobody has labelled yet.

Where a case has a solution, what that imports from the corpus is added to its targets: whoever is to write
the solution must have met it. Like every target it is believed, and proved or not by the judge.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path

from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool, PoolSettings, build_pool
from dartboard.mining.corpora import seen_from
from dartboard.mining.corpora.base import Corpus
from dartboard.mining.import_mining import imports_kernel
from dartboard.mining.raw_candidates import (
    CORPUS,
    SEEN_FROM,
    THIS_FILE,
    RawCandidates,
    write_candidates,
)
from dartboard.stores.urls import without_password

Heard = Callable[[int, int], None]


def extract(
    cases: Iterable[Case],
    corpus: Corpus,
    path: str | Path,
    *,
    settings: PoolSettings | None = None,
    listen: Heard | None = None,
) -> RawCandidates:
    """Draw the contexts of all cases, and write them down for who goes on from there.

    Args:
        cases: the questions, each with its targets.
        corpus: where contexts are drawn from; the file says where it is, if
            :func:`~dartboard.mining.corpora.open_corpus` opened it.
        path: the file, one JSON object a line.
        settings: how many contexts of each origin.
        listen: hears how many pools of how many are there.

    Returns:
        What the file holds.

    Raises:
        DatasetError: a target that the corpus has not, or settings that are no plain JSON.
    """
    chosen = settings or PoolSettings()
    listed = list(cases)
    pools: list[ContextPool] = []
    for case in listed:
        pools.append(build_pool(with_imports(case, corpus), corpus, chosen))
        if listen is not None:
            listen(len(pools), len(listed))
    every = {**asdict(chosen), **_named(corpus, Path(path))}
    return write_candidates(path, pools, corpus=corpus, settings=every)


def _named(corpus: Corpus, path: Path) -> dict[str, str]:
    """Where the corpus is, for who goes on with the file; no password is written down."""
    spec = getattr(corpus, "spec", None)
    if not isinstance(spec, str) or without_password(spec) != spec:
        return {}
    relative = seen_from(path.parent, spec)
    return {CORPUS: spec} if relative is None else {CORPUS: relative, SEEN_FROM: THIS_FILE}


def with_imports(case: Case, corpus: Corpus) -> Case:
    """The case with what its solution imports among its targets."""
    if case.solution is None:
        return case
    imported = imports_kernel(case, corpus).contexts
    return replace(case, targets=tuple(dict.fromkeys([*case.targets, *imported])))
