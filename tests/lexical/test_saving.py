"""Saved indexes come back whole or not at all."""

import json
import os
import random
import shutil

import numpy as np
import pytest

from dartboard.errors import StoreFormatError
from dartboard.lexical import Analyzer, BM25Index, InvertedIndex, saved_arrays

TEXTS = [f"passage {n} about topic{n % 7} and get_item_{n % 5}" for n in range(60)]
QUERIES = ["passage about topic3", "get_item_2", "17", "nothing"]


def answers(index):
    return [(rows.tolist(), scores.tolist()) for rows, scores in (index.top(q, 9) for q in QUERIES)]


@pytest.fixture
def saved(tmp_path):
    index = BM25Index.build(TEXTS, k1=1.5, b=0.4, analyzer=Analyzer(stem=False))
    index.save(tmp_path / "index")
    return index, tmp_path / "index"


@pytest.mark.parametrize("mmap", [True, False])
def test_bm25_comes_back(saved, mmap):
    index, folder = saved
    loaded = BM25Index.load(folder, mmap=mmap)
    assert answers(loaded) == answers(index)
    assert loaded.explain("topic3", 3) == index.explain("topic3", 3)
    assert (loaded.k1, loaded.b, loaded.analyzer, len(loaded)) == (1.5, 0.4, Analyzer(stem=False), 60)


def test_empty_indexes_come_back(tmp_path):
    BM25Index.build([]).save(tmp_path / "a")
    assert len(BM25Index.load(tmp_path / "a")) == 0
    BM25Index.build(["", "the"]).save(tmp_path / "b")
    assert BM25Index.load(tmp_path / "b").top("the", 3)[0].size == 0
    InvertedIndex.build([]).save(tmp_path / "c")
    assert len(InvertedIndex.load(tmp_path / "c")) == 0


def test_sparse_vectors_come_back(tmp_path):
    index = InvertedIndex.build([([5, 2**30], [1.0, 2.0]), ([5], [3.0])])
    index.save(tmp_path)
    loaded = InvertedIndex.load(tmp_path)
    assert loaded.top([5, 2**30], [1.0, 1.0], 5)[0].tolist() == [0, 1]


def test_a_save_replaces_while_the_old_one_is_open(saved):
    old, folder = saved
    reader = BM25Index.load(folder)
    BM25Index.build(TEXTS[:10]).save(folder)
    assert answers(reader) == answers(old)
    assert len(BM25Index.load(folder)) == 10
    assert len(list(folder.iterdir())) == 8


def test_a_save_that_fails_leaves_the_old_one(saved, monkeypatch):
    old, folder = saved
    before = sorted(path.name for path in folder.iterdir())
    real = np.save

    def full_disk(stream, array, **options):
        if array.dtype == np.float32:
            stream.write(b"half")
            raise OSError(28, "No space left on device")
        real(stream, array, **options)

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(OSError, match="No space"):
        BM25Index.build(["other"]).save(folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert answers(BM25Index.load(folder)) == answers(old)


def test_other_files_in_the_folder_stay(saved):
    index, folder = saved
    (folder / "notes.txt").write_text("mine")
    (folder / "array.npy").write_text("mine too")
    index.save(folder)
    assert {"notes.txt", "array.npy"} <= {path.name for path in folder.iterdir()}


def test_every_mutation_is_found(saved, tmp_path):
    """300 cut, flipped, emptied or missing files: an error, or (never so far) the same answers."""
    index, folder = saved
    wanted = answers(index)
    rng = random.Random(0)
    refused = 0
    for round_ in range(300):
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        path = rng.choice(sorted(copy.iterdir()))
        data = bytearray(path.read_bytes())
        match rng.randrange(4):
            case 0:
                del data[rng.randrange(len(data)) :]
            case 1:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            case 2:
                data += b"more"
            case 3:
                start = rng.randrange(len(data))
                data[start : start + 16] = rng.randbytes(16)
        path.write_bytes(data)
        try:
            assert answers(BM25Index.load(copy, mmap=bool(round_ % 2))) == wanted
        except StoreFormatError as error:
            refused += 1
            assert str(copy) in str(error)
        shutil.rmtree(copy)
    assert refused == 300


def test_missing_and_foreign_folders(saved, tmp_path):
    _, folder = saved
    with pytest.raises(StoreFormatError, match="holds no saved index"):
        BM25Index.load(tmp_path / "nowhere")
    with pytest.raises(StoreFormatError, match="kind 'bm25', not 'sparse-vectors'"):
        InvertedIndex.load(folder)
    next(folder.glob("weights-*.npy")).unlink()
    with pytest.raises(StoreFormatError, match=r"weights-.* is missing"):
        BM25Index.load(folder)
    (folder / "index.json").write_text("[" * 100_000)
    with pytest.raises(StoreFormatError, match="cannot be read"):
        BM25Index.load(folder)


def forge(folder, change):
    """A manifest that was changed by someone who minds checksums."""
    path = folder / "index.json"
    body = json.loads(path.read_text())
    del body["crc32"]
    change(body)
    path.write_text(json.dumps({**body, "crc32": saved_arrays._json_checksum(body)}))


@pytest.mark.parametrize(
    "change, what",
    [
        (lambda body: body.update(format_version=2), "format 2, this release reads format 1"),
        (lambda body: body.update(files=[]), "lacks its header or its files"),
        (lambda body: body["files"]["rows"].update(file="../rows.npy"), "strange file"),
        (lambda body: body["files"].pop("lengths"), "not a complete index"),
        (lambda body: body["files"].update(rows=body["files"]["starts"]), "wrong type"),
        (lambda body: body["files"].update(peaks=body["files"]["weights"]), "different lengths"),
        (lambda body: body["files"].update(counts=body["files"]["peaks"]), "counts"),
        (lambda body: body["files"].update(lengths=body["files"]["rows"]), "lengths"),
        (lambda body: body["header"].update(size=3), "rows that do not exist"),
        (lambda body: body["header"].update(analyzer={}), "not a complete index"),
        (lambda body: body["files"].update(extra=body["files"]["rows"]), "not a complete index"),
    ],
)
def test_manifests_that_do_not_fit(saved, change, what):
    _, folder = saved
    forge(folder, change)
    with pytest.raises(StoreFormatError, match=what):
        BM25Index.load(folder)


def test_arrays_that_do_not_fit(tmp_path):
    index = InvertedIndex.build([([1, 2], [1.0, 1.0]), ([2], [1.0])])
    good = {"terms": index._terms, **index._postings.arrays()}
    for name, array, what in [
        ("starts", np.array([0, 2, 2]), "follow each other"),
        ("terms", np.array([1], np.int32), "terms that do not match"),
        ("rows", np.array([0, 0, -1], np.int32), "rows that do not exist"),
        ("weights", np.array([[1.0, 1.0, 1.0]], np.float32), "wrong type"),
    ]:
        saved_arrays.save_arrays(tmp_path, "sparse-vectors", {"size": 2}, {**good, name: array})
        with pytest.raises(StoreFormatError, match=what):
            InvertedIndex.load(tmp_path)


def test_arrays_of_objects_are_refused(saved, tmp_path):
    _, folder = saved
    path = next(folder.glob("rows-*.npy"))
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    entry = {"bytes": path.stat().st_size, "crc32": saved_arrays._file_checksum(path)}
    forge(folder, lambda body: body["files"]["rows"].update(entry))
    with pytest.raises(StoreFormatError, match="is not an array"):
        BM25Index.load(folder)


@pytest.mark.skipif(os.name == "nt", reason="needs an unlink of open files")
def test_a_reader_overtaken_by_a_save_reads_the_new_index(saved, monkeypatch):
    _, folder = saved
    new = BM25Index.build(TEXTS[:5])
    real, calls = saved_arrays._read_manifest, []

    def slow(*args):
        body = real(*args)
        calls.append(1)
        if len(calls) == 1:
            new.save(folder)
        return body

    monkeypatch.setattr(saved_arrays, "_read_manifest", slow)
    assert len(BM25Index.load(folder)) == 5
