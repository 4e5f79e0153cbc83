"""Kill a process at random moments of an ingest and look at what it left behind.

Run as a script with a folder, a number of kills and a seed. It imports once and forks for every life, so
that a life costs milliseconds; the children die by SIGKILL in the middle of whatever they do: writing
batches, replacing and deleting, building indexes. After every death the file is opened and searched.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from dartboard.stores import Manifest, Record, arrays, derived, parse_filter
from dartboard.stores.sqlite import SqliteStore

BATCH = 6
LIVES_A_FILE = 20
arrays._LEAST_CHANGES, derived.SAVED_FROM = 10, 10  # join parts and save arrays often
MANIFEST = Manifest(model="m", dimension=8)


def records_of(batch: int) -> list[Record]:
    """The records of a batch: every third batch replaces the one before it as well."""
    chance = np.random.default_rng(batch)
    return [
        Record(
            f"{batch:05d}-{at}", f"text word{batch}", chance.standard_normal(8), {"batch": batch, "of": BATCH}
        )
        for at in range(BATCH)
    ]


def ingest(path: Path, first: int, acknowledged: int) -> None:
    """Write batch after batch, say so when each has returned, and build indexes now and then."""
    store = SqliteStore(path)
    collection = store.open() if store.collections() else store.create("default", MANIFEST)
    for batch in range(first, first + 10_000):
        replaced = records_of(batch - 1) if batch % 3 == 0 and batch > first else []
        collection.upsert([*records_of(batch), *replaced])
        os.write(acknowledged, batch.to_bytes(4, "little"))
        if batch % 7 == 0:
            collection.prepare()


def live_and_die(path: Path, first: int, batches: int, seconds: float) -> int:
    """One life, ended so long after so many batches: the last one acknowledged, else ``first - 1``."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            ingest(path, first, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb", buffering=0) as stream:
        data = b"".join(stream.read(4) for _ in range(batches))
        time.sleep(seconds)  # timing: a kill at any moment is right
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := stream.read(4096):
            data += more
    return int.from_bytes(data[-4:], "little") if data else first - 1


def inspect(path: Path, acknowledged: int) -> tuple[int, int]:
    """Check all that is in the file; the last batch there and the number of searches made."""
    with SqliteStore(path) as store:
        if not store.collections():
            assert acknowledged < 0, "acknowledged batches are gone"
            return -1, 0
        collection = store.open()
        found = [each for batch in collection.iterate() for each in batch]
        batches = sorted({each.metadata["batch"] for each in found})
        assert batches == list(range(len(batches))), f"a batch is missing: {batches}"
        assert len(found) == BATCH * len(batches), "a batch is there in part"
        assert acknowledged < len(batches) <= acknowledged + 2, (acknowledged, len(batches))
        for each, right in zip(found, (each for batch in batches for each in records_of(batch)), strict=True):
            assert each.id == right.id and np.array_equal(each.embedding, right.embedding)
        searches = 0
        matrix = (
            np.stack([each.embedding for each in found]).astype(np.float64) if found else np.zeros((0, 8))
        )
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
        for batch in {*batches[-2:], *batches[:1]}:
            query = records_of(batch)[0].embedding
            order = np.argsort(-(matrix @ query), kind="stable")[:5]
            hits = collection.search_vector(query, 5)
            assert [hit.id for hit in hits] == [found[at].id for at in order], "a search is wrong"
            assert collection.count(parse_filter(f"batch = {batch}")) == BATCH
            searches += 2
        return (batches[-1] if batches else -1), searches


def main(folder: Path, kills: int, seed: int) -> dict[str, int]:
    """So many lives, spread over files; counts of what was seen."""
    chance = random.Random(seed)
    counts = {
        "kills": 0,
        "acknowledged": 0,
        "unacknowledged_but_kept": 0,
        "records": 0,
        "searches": 0,
        "idle": 0,
    }
    last, path = -1, folder
    for life in range(kills):
        if life % LIVES_A_FILE == 0:
            counts["records"] += BATCH * (last + 1)
            last, path = -1, folder / f"{life}.dartboard"
        acknowledged = live_and_die(
            path, last + 1, chance.choice([0, 1, 1, 2, 3, 6]), chance.uniform(0.0, 0.012)
        )
        kept, searches = inspect(path, acknowledged)
        counts["kills"] += 1
        counts["acknowledged"] += acknowledged - last
        counts["idle"] += acknowledged == last
        counts["unacknowledged_but_kept"] += kept - acknowledged
        counts["searches"] += searches
        last = kept
    counts["records"] += BATCH * (last + 1)
    return counts


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
