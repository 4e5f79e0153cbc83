"""Damage to the files of a store, and what each door of the store answers then.

Every kind of damage is drawn from a seeded generator, so a failure names the seed that repeats it.
"""

import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.errors import DartboardError
from dartboard.stores import SparseVector, parse_filter
from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.stores.embedded.tables import PAGE_BYTES
from dartboard.testing.samples import sample_queries, sample_records

EAGER = Tuning(files_from=0, tail_least=10, compare_up_to=5)
RECORDS = sample_records(420)
STORED, NEWER = RECORDS[:400], RECORDS[400:]
SOME = [record.id for record in STORED[::9]]
KINDS = ("zeroed", "flipped", "byte", "cut", "duplicated", "swapped", "random", "shifted", "emptied", "gone")


def damage(files: list[Path], chance: random.Random, kinds: Sequence[str] = KINDS) -> str:
    """Harm one file, or exchange pages of it; says what was done."""
    file = chance.choice(files)
    data = bytearray(file.read_bytes())
    page = PAGE_BYTES if len(data) >= 2 * PAGE_BYTES else max(1, len(data) // 4)
    pages = max(1, len(data) // page)
    one, other = (
        slice(at * page, (at + 1) * page) for at in (chance.randrange(pages), chance.randrange(pages))
    )
    kind = chance.choice(kinds)
    match kind:
        case "zeroed":
            data[one] = bytes(len(data[one]))
        case "flipped":
            used = [at for at, byte in enumerate(data) if byte] or [0]
            data[chance.choice(used)] ^= 1 << chance.randrange(8)
        case "byte":
            data[chance.randrange(len(data))] = chance.randrange(256)
        case "cut":
            del data[chance.randrange(len(data)) :]
        case "duplicated":
            data[one] = data[other]
        case "swapped":
            data[one], data[other] = data[other], data[one]
        case "random":
            at, size = chance.randrange(len(data)), chance.randrange(1, 400)
            data[at : at + size] = chance.randbytes(len(data[at : at + size]))
        case "shifted":
            data[one.start : one.start] = chance.randbytes(chance.randrange(1, 40))
        case "emptied":
            data.clear()
        case _:
            file.unlink()
            return f"{file.name} gone"
    file.write_bytes(data)
    return f"{file.name} {kind} {one.start}-{one.stop}, {other.start}"


def plain(record: Any) -> tuple[Any, ...]:
    """All of a record, to be compared."""
    return (
        record.id,
        record.text,
        record.embedding.tobytes(),
        repr(record.metadata),
        {name: vector.tobytes() for name, vector in record.vectors.items()},
        {name: (each.terms.tobytes(), each.weights.tobytes()) for name, each in record.sparse.items()},
        dict(record.blobs),
    )


def searches(collection: Any) -> list[Any]:
    query = sample_queries(1, seed=4)[0]
    sparse = SparseVector(np.arange(0, 500, 3, dtype=np.int32), np.ones(167, np.float32))
    where = parse_filter("year >= 2006")
    return [
        collection.search_vector(query, 10),
        collection.search_vector(query, 10, exact=True),
        collection.search_vector(np.ones(12, np.float32), 10, field="pooled"),
        collection.search_sparse(sparse, 10, field="splade"),
        collection.search_text("broker queue", 10),
        collection.search_vector(query, 10, where=where),
        collection.search_text("broker queue", 10, where=where),
    ]


def listed(collection: Any) -> list[Any]:
    return [plain(record) for batch in collection.iterate() for record in batch]


def stated(collection: Any) -> Any:
    found = collection.stats()
    return found.records, found.details["revision"], collection.count()


def vectors(collection: Any) -> Any:
    ids, found = collection.unit_vectors(SOME)
    return ids, found.tobytes()


READING: dict[str, Callable[[Any], Any]] = {
    "search": searches,
    "get": lambda collection: [plain(record) for record in collection.get(SOME, blobs=["other"])],
    "unit_vectors": vectors,
    "blobs": lambda collection: collection.read_blobs(SOME, "colbert"),
    "explain": lambda collection: collection.explain_text("broker queue", SOME[2]),
    "list": listed,
    "stats": stated,
}


def answered(work: Callable[[], Any]) -> Any:
    """What a door answers; an error of dartboard's own is an answer, any other is not."""
    try:
        return work()
    except DartboardError as error:
        assert str(error).strip()
        return error


def written(collection: Any) -> tuple[dict[str, Any], frozenset[str]]:
    """What writing answers, and the ids that are there then: a write that was refused changed nothing."""
    there = {record.id for record in STORED}
    found = {"upsert": answered(lambda: collection.upsert(NEWER))}
    if found["upsert"] is None:
        there |= {record.id for record in NEWER}
    found["delete"] = answered(lambda: collection.delete(SOME[:3]))
    if found["delete"] == 3:
        there -= set(SOME[:3])
    found["prepare"] = answered(collection.prepare)
    return found, frozenset(there)


def wrong_answers(path: Path, aside: Path, right: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The doors of the store at ``path`` that answer something else than ``right``, and those that refuse."""
    wrong: list[str] = []
    refused: list[str] = []

    def ask(door: str, expected: Any, work: Callable[[], Any]) -> None:
        found = answered(work)
        if isinstance(found, DartboardError):
            refused.append(door)
        elif found != expected:
            wrong.append(door)

    def look(mode: str, store: Any) -> None:
        ask(f"names, {mode}", ["default"], store.collections)
        for name, door in READING.items():
            ask(f"{name}, {mode}", right[name], lambda door=door: door(store.open()))  # type: ignore[misc]
        ask(f"doctor, {mode}", (len(STORED), 0), store.check)
        ask(f"snapshot, {mode}", None, lambda: store.open().snapshot(aside / mode))

    def read() -> None:
        with EmbeddedStore(path, read_only=True, tuning=EAGER) as store:
            look("reading", store)

    def write() -> None:
        with EmbeddedStore(path, tuning=EAGER) as store:
            look("writing", store)
            collection = store.open()
            found, there = written(collection)
            refused.extend(name for name, each in found.items() if isinstance(each, DartboardError))
            ask("count afterwards", len(there), collection.count)
            ask("list afterwards", contents_of(there), lambda: listed(collection))
            ask("nearest afterwards", nearest(there), lambda: closest(collection))
        with EmbeddedStore(path, tuning=EAGER, read_only=True) as store:
            ask("list reopened", contents_of(there), lambda: listed(store.open()))
            ask("nearest reopened", nearest(there), lambda: closest(store.open()))

    ask("open, reading", None, read)
    ask("open, writing", None, write)
    for mode in ("reading", "writing"):
        if (aside / mode).exists():
            ask(f"restore, {mode}", right["list"], lambda mode=mode: restored(aside / mode, aside / "again"))  # type: ignore[misc]
    return wrong, refused


def contents_of(ids: frozenset[str]) -> list[Any]:
    return [plain(record) for record in RECORDS if record.id in ids]


def closest(collection: Any) -> list[str]:
    return [hit.id for hit in collection.search_vector(sample_queries(1, seed=4)[0], 10, exact=True)]


def nearest(ids: frozenset[str]) -> list[str]:
    """The same by hand."""
    chosen = [record for record in RECORDS if record.id in ids]
    matrix = np.stack([record.embedding for record in chosen]).astype(np.float64)
    scores = matrix @ sample_queries(1, seed=4)[0] / np.linalg.norm(matrix, axis=1)
    return [chosen[at].id for at in np.argsort(-scores, kind="stable")[:10]]


def restored(snapshot: Path, path: Path) -> Any:
    """What a store made of a snapshot lists."""
    for file in path.parent.glob(f"{path.name}*"):
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    with EmbeddedStore(path) as store:
        return listed(store.restore(snapshot, "again"))
