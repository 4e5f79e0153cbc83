"""Processes killed while writing, and full disks.

``DARTBOARD_DEEP_CASES`` is how many kills; ``make test-deep`` sets it to 1,000.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dartboard.errors import StoreError
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import MANIFEST, sample_queries, sample_records

KILLS = int(os.environ.get("DARTBOARD_DEEP_CASES", "60"))
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


# Full disks

FULL = """
import json, resource, sys
from dartboard.errors import StoreError
from dartboard.stores import derived
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import MANIFEST, sample_queries, sample_records
derived.SAVED_FROM = 0
path, limit = sys.argv[1], int(sys.argv[2])
records = sample_records(3000)
query = sample_queries(1)[0]
complaints = []
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
store = SqliteStore(path)
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
collection.prepare()  # finds no room for arrays, and says so in the log only
store.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with SqliteStore(path) as store:
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
    with SqliteStore(path) as store:
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
    assert len(complaints) == 1 and "disk is full" in complaints[0]
    assert len(before) == 5 and during == after and words == 5
    if kept == 200:
        assert before == during


def test_a_file_that_may_not_grow(tmp_path):
    """SQLite's own report of a full disk."""
    path = tmp_path / "s.dartboard"
    with SqliteStore(path) as store:
        collection = store.create("default", MANIFEST)
        collection.upsert(sample_records(100))
        with store.writing() as connection:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreError, match="full"):
            collection.upsert(sample_records(1500)[100:])
        assert collection.count() == 100
        assert collection.search_vector(sample_queries(1)[0], 1)
