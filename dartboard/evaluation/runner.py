"""Run every system on every question, several questions at a time.

A question is a unit of work: its candidates and pools are made once and shared by all systems. The result
does not depend on the number of workers or their order.
"""

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextvars import copy_context

from dartboard.blas import one_thread_each
from dartboard.deadline import check
from dartboard.evaluation.baselines import System, check_unique
from dartboard.evaluation.journal import Journal, Part
from dartboard.evaluation.questions import Triage
from dartboard.types import Dataset
from dartboard.version import __version__

Listener = Callable[[str, int, int], None]
"""Called with the step, the number of finished items, and the total."""

Runs = dict[str, list[dict[str, Sequence[str]]]]
"""For each system, one run per seed."""


def silent(step: str, done: int, total: int) -> None:
    """A listener that does nothing."""


def answer(
    triage: Triage,
    query_ids: Sequence[str],
    systems: Sequence[System],
    *,
    depth: int,
    workers: int | None = None,
    journal: Journal | None = None,
    listener: Listener = silent,
) -> tuple[Runs, dict[str, list[float]]]:
    """The runs, and the seconds of each system per question.

    Parts in the journal are reused, and every finished question is added to it.
    """
    check_unique(systems)
    step = f"Answering {triage.dataset.name}"
    known: dict[tuple[str, str], Part] = dict(journal.parts) if journal else {}
    todo = [
        (query_id, missing)
        for query_id in query_ids
        if (missing := [system for system in systems if (system.name, query_id) not in known])
    ]
    done = len(query_ids) - len(todo)
    listener(step, done, len(query_ids))
    with one_thread_each(), ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        try:
            futures = [
                pool.submit(copy_context().run, parts_of, triage, query_id, missing, depth, journal)
                for query_id, missing in todo
            ]
            for number, future in enumerate(as_completed(futures), start=done + 1):
                known |= {(part.system, part.query_id): part for part in future.result()}
                listener(step, number, len(query_ids))
        finally:  # running questions are finished, waiting ones are dropped
            pool.shutdown(wait=True, cancel_futures=True)
    return _gathered(known, query_ids, systems)


def parts_of(
    triage: Triage,
    query_id: str,
    systems: Sequence[System],
    depth: int,
    journal: Journal | None = None,
) -> list[Part]:
    """The picks of each system for one question, with the seconds that they took."""
    question = triage.question(query_id)
    parts = []
    for system in systems:
        check()
        started = time.perf_counter()
        lists = [list(system.rank(question, depth, seed)) for seed in system.seeds]
        seconds = (time.perf_counter() - started) / len(lists)
        parts.append(Part(system.name, query_id, lists, seconds))
        if journal:
            journal.add(parts[-1])
    return parts


def _gathered(
    known: Mapping[tuple[str, str], Part], query_ids: Sequence[str], systems: Sequence[System]
) -> tuple[Runs, dict[str, list[float]]]:
    runs: Runs = {}
    seconds: dict[str, list[float]] = {}
    for system in systems:
        parts = [known[system.name, query_id] for query_id in query_ids]
        runs[system.name] = [
            {part.query_id: part.lists[place] for part in parts} for place in range(len(system.seeds))
        ]
        seconds[system.name] = [part.seconds for part in parts]
    return runs, seconds


def identity(dataset: Dataset, *, depth: int, triage_k: int, seed: int = 0) -> dict[str, str | int]:
    """Identifies data set, depth, triage and version that picks depend on."""
    digest = hashlib.sha256()
    for chunk in dataset.chunks:
        digest.update(f"{chunk.id}\0".encode())
        digest.update(chunk.embedding.tobytes())
    for query_id, query in zip(dataset.query_ids, dataset.queries, strict=True):
        digest.update(f"{query_id}\0{query}\0".encode())
    vectors = dataset.metadata.get("query_embeddings")
    if vectors is not None:
        digest.update(vectors.tobytes())
    return {
        "dartboard": __version__,
        "dataset": dataset.name,
        "content": digest.hexdigest()[:16],
        "depth": depth,
        "triage_k": triage_k,
        "seed": seed,
    }
