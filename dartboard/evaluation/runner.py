"""Run every system on every question, several questions at a time.

A question is a unit of work: its candidates and pools are made once and shared by all systems. The result
does not depend on the number of workers or their order.
"""

import hashlib
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from contextvars import copy_context
from typing import Protocol

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

Asked = tuple[str, Sequence[System]]
"""The id of a question, and the systems that answer it."""


class RemoteRunner(Protocol):
    """Other machines that answer questions."""

    def takes(self, system: System) -> bool:
        """Whether the system can run there."""

    def parts(self, triage: Triage, asked: Sequence[Asked], *, depth: int) -> Iterator[list[Part]]:
        """The parts of a few questions at a time, in order of completion."""


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
    remote: RemoteRunner | None = None,
    listener: Listener = silent,
) -> tuple[Runs, dict[str, list[float]]]:
    """The runs, and the seconds of each system per question.

    Parts in the journal are reused, and every finished question is added to it. Systems that can run
    ``remote`` do so.
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
    missing_parts = {query_id: len(missing) for query_id, missing in todo}
    far = {system.name for system in systems if remote and remote.takes(system)}

    def made() -> Generator[Part, None, None]:
        """Parts in order of completion, already in the journal."""
        here = _only(todo, lambda name: name not in far)
        yield from _parts_here(triage, here, depth, workers, journal)
        if remote is None:
            return
        for parts in remote.parts(triage, _only(todo, lambda name: name in far), depth=depth):
            for part in parts:
                if journal:
                    journal.add(part)
            yield from parts

    with closing(made()) as finished:
        for part in finished:
            known[part.system, part.query_id] = part
            missing_parts[part.query_id] -= 1
            if not missing_parts[part.query_id]:
                done += 1
                listener(step, done, len(query_ids))
    return _gathered(known, query_ids, systems)


def _only(todo: Sequence[Asked], wanted: Callable[[str], bool]) -> list[Asked]:
    """The questions with only the wanted systems; questions without any are dropped."""
    kept = [(query_id, [system for system in systems if wanted(system.name)]) for query_id, systems in todo]
    return [(query_id, systems) for query_id, systems in kept if systems]


def _parts_here(
    triage: Triage, todo: Sequence[Asked], depth: int, workers: int | None, journal: Journal | None
) -> Iterator[Part]:
    with one_thread_each(), ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        try:
            futures = [
                pool.submit(copy_context().run, parts_of, triage, query_id, missing, depth, journal)
                for query_id, missing in todo
            ]
            for future in as_completed(futures):
                yield from future.result()
        finally:  # running questions are finished, waiting ones are dropped
            pool.shutdown(wait=True, cancel_futures=True)


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
