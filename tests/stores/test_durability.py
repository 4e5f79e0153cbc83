"""Processes killed while writing, derived files harmed in many ways, and full disks.

``DARTBOARD_DEEP_CASES`` is how many kills and how many ways; ``make test-deep`` sets it to 1,000.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dartboard.errors import StoreError
from dartboard.stores import SparseVector, parse_filter
from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.testing.samples import MANIFEST, sample_queries, sample_records

KILLS = int(os.environ.get("DARTBOARD_DEEP_CASES", "60"))
MUTATIONS = int(os.environ.get("DARTBOARD_DEEP_CASES", "150"))
EAGER = Tuning(files_from=0, approximate_from=60, tail_least=10, compare_up_to=5)
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def test_killed_at_random_moments_of_an_ingest(tmp_path, capsys):
    """Every acknowledged batch is there and whole, no batch is there in part, and searches are right."""
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path), str(KILLS), "0"],
        capture_output=True,
        text=True,
        check=False,
        env=ONE_THREAD,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    with capsys.disabled():
        print(f"\nkill -9: {counts}")
    assert counts["kills"] == KILLS and counts["acknowledged"] > KILLS
    assert counts["idle"] < KILLS / 2, "most kills must fall into writing"


# Harm to derived files


def harmed(files, chance):
    """Harm one file, or exchange two; says what was done."""
    file = chance.choice(files)
    data = file.read_bytes()
    match chance.choice(
        ["cut", "flip", "flip", "flip", "exchange", "random", "empty", "longer", "gone", "block"]
    ):
        case "cut":
            file.write_bytes(data[: chance.randrange(len(data) or 1)])
        case "flip":
            at = chance.randrange(len(data))
            file.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        case "exchange":
            other = chance.choice(files)
            file.write_bytes(other.read_bytes())
            other.write_bytes(data)
        case "random":
            file.write_bytes(chance.randbytes(len(data)))
        case "empty":
            file.write_bytes(b"")
        case "longer":
            file.write_bytes(data + chance.randbytes(chance.randrange(1, 100)))
        case "gone":
            file.unlink()
        case _:
            at, size = chance.randrange(len(data)), chance.randrange(1, 200)
            file.write_bytes(data[:at] + bytes(size) + data[at + size :])


def answers(collection):
    where = parse_filter("year >= 2006")
    query = sample_queries(1, seed=4)[0]
    sparse = SparseVector(np.arange(0, 500, 3), np.ones(167))
    return [
        collection.search_vector(query, 10),
        collection.search_vector(query, 10, where=where),
        collection.search_vector(query, 10, exact=True),
        collection.search_vector(np.ones(12), 10, field="pooled"),
        collection.search_text("broker queue", 10, where=where),
        collection.search_sparse(sparse, 10, field="splade"),
    ]


def test_harmed_derived_files_change_no_answer(tmp_path, capsys, caplog):
    caplog.set_level("CRITICAL")
    path = tmp_path / "s.dartboard"
    records = sample_records(90)
    with EmbeddedStore(path, tuning=EAGER) as store:
        store.create("default", MANIFEST).upsert(records[:80])
    with EmbeddedStore(path, tuning=EAGER) as store:  # a tail, and rows that are gone
        store.open().upsert(records[75:])
        store.open().delete([records[0].id])
        right = answers(store.open())
    derived, whole = Path(f"{path}.derived"), tmp_path / "whole"
    shutil.copytree(derived, whole)
    shutil.copy(path, tmp_path / "whole.dartboard")
    chance = random.Random(0)
    unharmed = {
        file.relative_to(derived): file.read_bytes() for file in sorted(derived.rglob("*")) if file.is_file()
    }
    assert len(unharmed) > 15
    mended = 0
    for number in range(MUTATIONS):
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            files = sorted(file for file in derived.rglob("*") if file.is_file() and file.stat().st_size)
            harmed(files, chance)
        read_only = number % 10 != 0
        with EmbeddedStore(path, tuning=EAGER, read_only=read_only) as store:
            assert answers(store.open()) == right, number
        if not read_only:
            with EmbeddedStore(path, tuning=EAGER, read_only=True) as store:
                assert answers(store.open()) == right, number
            mended += 1
            shutil.copy(tmp_path / "whole.dartboard", path)
            shutil.rmtree(derived)
            shutil.copytree(whole, derived)
        else:
            for name, data in unharmed.items():
                file = derived / name
                if not file.exists() or file.read_bytes() != data:
                    file.write_bytes(data)
    with capsys.disabled():
        print(f"\nderived files: {MUTATIONS} mutations of {len(unharmed)} files, none told, {mended} mended")


# Full disks

FULL = """
import json, resource, sys
from dartboard.errors import StoreError
from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.testing.samples import MANIFEST, sample_queries, sample_records
tuning = Tuning(files_from=0, approximate_from=60, tail_least=10, compare_up_to=5)
path, limit = sys.argv[1], int(sys.argv[2])
records = sample_records(3000)
query = sample_queries(1)[0]
complaints = []
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
store = EmbeddedStore(path, tuning=tuning)
collection = store.open()
before = [hit.id for hit in collection.search_vector(query, 5)]
kept = collection.count()
for start in range(kept, 3000, 100):
    try:
        collection.upsert(records[start : start + 100])
        kept += 100
    except StoreError as error:
        complaints.append(str(error))
        break
assert collection.count() == kept
during = [hit.id for hit in collection.search_vector(query, 5)]
words = len(collection.search_text("broker", 5))
store.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with EmbeddedStore(path, tuning=tuning) as store:
    collection = store.open()
    after = [hit.id for hit in collection.search_vector(query, 5)]
    assert collection.count() == kept
    collection.upsert(records[-100:])
    assert collection.count() == kept + 100
print(json.dumps([complaints, kept, before, during, after, words]))
"""


@pytest.mark.parametrize("room", [0, 200_000, 600_000])
def test_a_full_disk_leaves_the_old_index_answering(tmp_path, room):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path, tuning=EAGER) as store:
        store.create("default", MANIFEST).upsert(sample_records(200))
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path), str(40_000 + room)],
        capture_output=True,
        text=True,
        check=False,
        env=ONE_THREAD,
    )
    assert done.returncode == 0, done.stderr
    complaints, kept, before, during, after, words = json.loads(done.stdout)
    assert len(complaints) == 1 and "disk is full" in complaints[0] and "still answers" in complaints[0]
    assert len(before) == 5 and during == after and words == 5
    if kept == 200:
        assert before == during


def test_a_file_that_may_not_grow(tmp_path):
    """SQLite's own report of a full disk."""
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path) as store:
        collection = store.create("default", MANIFEST)
        collection.upsert(sample_records(100))
        with store._connections.writing() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match="disk is full"):
            collection.upsert(sample_records(1500)[100:])
        assert collection.count() == 100
        assert collection.search_vector(sample_queries(1)[0], 1)
