"""Indexing: what is read again, what is replaced, what survives an interruption."""

import os
import random
from contextlib import suppress
from pathlib import Path

import pytest

from dartboard.embeddings import default_model
from dartboard.engine import Engine, index_paths
from dartboard.errors import ConfigError, IngestError, ModelError
from dartboard.ingest import ChunkingConfig, ReadOptions, RowFields
from dartboard.near_duplicates import fingerprint
from dartboard.plain_text import place_of
from dartboard.relevance import PROBES
from dartboard.stores.filters import Compare
from dartboard.stores.memory import MemoryStore
from dartboard.stores.records import FINGERPRINT
from tests.models import WordBag


class Counting(WordBag):
    """A model that counts what it encodes, and fails when told to."""

    fingerprint = "counting"

    def __init__(self):
        super().__init__()
        self.seen = 0
        self.fail_after = None

    def encode(self, texts, batch_size=32):
        self.seen += 1 if isinstance(texts, str) else len(texts)
        if self.fail_after is not None and self.seen > self.fail_after:
            raise KeyboardInterrupt
        return super().encode(texts, batch_size)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "tea.md").write_text("# Tea\n\nTea grows on hills.\n\n# Drying\n\nThen it is dried.\n")
    (docs / "coffee.txt").write_text("Coffee is roasted dark. It is ground fine.")
    (docs / "deep").mkdir()
    (docs / "deep" / "brew.py").write_text("def brew(leaves):\n    return leaves\n")
    return docs


@pytest.fixture
def engine():
    return Engine(MemoryStore(), model=Counting(), retriever="hybrid")


def sources(engine):
    return sorted({r.metadata["source"] for batch in engine.collection.iterate() for r in batch})


def test_a_folder(engine, folder):
    told = []
    report = index_paths(engine, [folder], listen=told.append)
    assert (report.new, report.changed, report.unchanged, report.problems) == (3, 0, 0, [])
    assert report.chunks == report.encoded == engine.collection.count() > 0
    assert sources(engine) == ["docs/coffee.txt", "docs/deep/brew.py", "docs/tea.md"]
    assert told[-1].files == told[-1].files_total == 3 and told[-1].bytes == told[-1].bytes_total
    found = engine.search("where does tea grow", k=1).chunks[0]
    assert found.metadata["source"] == "docs/tea.md" and found.metadata["title"] == "Tea"


def test_chunks_are_kept_with_the_fingerprints_of_their_texts(engine, folder):
    index_paths(engine, [folder])
    for record in (record for batch in engine.collection.iterate() for record in batch):
        assert record.blobs[FINGERPRINT] == fingerprint(record.text)


def test_only_what_changed_is_encoded(engine, folder):
    index_paths(engine, [folder])
    before = engine.model.seen
    again = index_paths(engine, [folder])
    assert (again.unchanged, again.chunks, engine.model.seen) == (3, 0, before)
    (folder / "coffee.txt").write_text("Coffee is green first.")
    changed = index_paths(engine, [folder])
    assert (changed.changed, changed.unchanged, changed.encoded) == (1, 2, 1)
    texts = [r.text for batch in engine.collection.iterate() for r in batch]
    assert "Coffee is green first." in texts and not any("roasted" in text for text in texts)


def test_text_that_stayed_keeps_its_vector(engine, folder):
    paragraphs = [f"Paragraph {n} speaks of number {n} and nothing else at all." for n in range(12)]
    (folder / "long.txt").write_text("\n\n".join(paragraphs))
    chunking = ChunkingConfig(size=24, overlap=0)
    index_paths(engine, [folder], chunking=chunking)
    (folder / "long.txt").write_text("\n\n".join([*paragraphs, "And a last one."]))
    report = index_paths(engine, [folder])
    assert report.changed == 1 and 0 < report.encoded < report.chunks


def test_files_that_are_gone_go_with_prune_only_and_only_below_the_path(engine, folder):
    index_paths(engine, [folder])
    (folder / "coffee.txt").unlink()
    (folder / "deep" / "brew.py").unlink()
    kept = index_paths(engine, [folder / "deep"])
    assert (kept.gone, kept.deleted, len(sources(engine))) == (1, 0, 3)
    pruned = index_paths(engine, [folder / "deep"], prune=True)
    assert pruned.deleted == 1 and sources(engine) == ["docs/coffee.txt", "docs/tea.md"]


def test_an_interrupted_run_goes_on(engine, folder):
    for number in range(6):
        (folder / f"note{number}.txt").write_text(f"Note {number} about leaf {number}. " * 3)
    engine.model.fail_after = 2 * len(PROBES) + 5  # a new collection measures its model first
    with pytest.raises(KeyboardInterrupt):
        index_paths(engine, [folder], batch_size=2)
    finished = engine.collection.count()
    assert 0 < finished <= 5
    engine.model.fail_after = None
    seen = engine.model.seen
    report = index_paths(engine, [folder], batch_size=2)
    assert len(sources(engine)) == 9
    assert report.unchanged > 0 and engine.model.seen - seen < engine.collection.count()
    assert index_paths(engine, [folder]).unchanged == 9


def test_bad_files_do_not_stop_the_run(engine, folder):
    (folder / "empty.md").write_text("")
    (folder / "bad.pdf").write_bytes(b"%PDF-1.4 broken")
    (folder / "data.bin").write_bytes(bytes(range(256)))
    (folder / "rows.jsonl").write_text('{"text": "a row about tea", "id": "r1"}\nnot json\n')
    report = index_paths(engine, [folder])
    assert report.new == 4
    assert {problem.source for problem in report.problems} == {
        "docs/empty.md",
        "docs/bad.pdf",
        "docs/data.bin",
        "docs/rows.jsonl",
    }


def test_names_that_are_no_text_are_left_out_and_the_rest_is_indexed(folder):
    name = bytes(folder) + b"/inv\xff.txt"
    with open(name, "wb") as file:  # noqa: PTH123 - a name of bytes
        file.write(b"x")
    (folder / "new\nline.txt").write_text("A name of two lines.")
    with Engine.open("x.dartboard", model=Counting()) as engine:
        report = index_paths(engine, [folder])
        assert [(p.source, p.code) for p in report.problems] == [("docs/inv\\udcff.txt", "name")]
        assert "rename it" in report.problems[0].reason
        assert report.new == 4 and len(sources(engine)) == 4
        found = engine.search("A name of two lines", k=1).chunks[0]
        assert place_of(found.metadata, found.id) == "docs/new line.txt:1"
        assert index_paths(engine, [folder], prune=True).unchanged == 4


def test_the_index_does_not_index_itself(folder):
    (folder / "tea[1].md").write_text("A document, whatever its name.")
    with Engine.open(str(folder / "tea[1]"), model=Counting(), retriever="hybrid") as engine:
        report = index_paths(engine, [folder])
        assert report.problems == [] and report.new == 4
        assert "tea[1].md" in sources(engine)
        assert index_paths(engine, [folder]).problems == []


def test_a_path_that_is_not_there_changes_nothing(engine, folder):
    index_paths(engine, folder)
    (folder / "deep").rename(folder / "moved")
    for path in (folder / "deep", "nowhere"):
        with pytest.raises(IngestError, match="there is no file or folder"):
            index_paths(engine, path, prune=True)
    assert len(sources(engine)) == 3
    with pytest.raises(IngestError, match="no file or folder"):
        index_paths(Engine(MemoryStore(), model=Counting()), ["nowhere"])


def test_folders_of_one_name_and_other_working_folders_stay_apart(engine, folder, tmp_path, monkeypatch):
    work = tmp_path / "work"
    for name, text in (("b", "alpha keys"), ("c", "beta limits"), ("work", "gamma here")):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "docs" / "a.md").write_text(text)
    monkeypatch.chdir(work)
    report = index_paths(engine, [tmp_path / "b" / "docs", tmp_path / "c" / "docs", "docs"])
    assert report.new == 3 and engine.collection.count() == 3
    assert {"docs/a.md", (tmp_path / "b/docs/a.md").as_posix()} < set(sources(engine))
    monkeypatch.chdir(tmp_path / "b")
    again = index_paths(engine, ["docs", work], prune=True)
    assert (again.unchanged, again.deleted, engine.collection.count()) == (2, 0, 3)


def test_a_file_that_lost_its_text_goes(engine, folder):
    index_paths(engine, folder)
    (folder / "tea.md").write_text("")
    report = index_paths(engine, folder)
    assert report.emptied == 1 and "docs/tea.md" not in sources(engine)
    (folder / "coffee.txt").write_bytes(b"\x00\x01" * 50)
    assert index_paths(engine, folder).emptied == 1
    assert sources(engine) == ["docs/deep/brew.py"]


def test_words_without_end_are_split_and_counted(folder):
    (folder / "long.txt").write_text("ACGT" * 20_000)
    with Engine(MemoryStore(), model=default_model(), retriever="dense") as engine:
        index_paths(engine, folder / "long.txt")
        records = [record for batch in engine.collection.iterate() for record in batch]
        assert len(records) > 10 and max(len(record.text) for record in records) <= 256 * 17
        assert engine.search("ACGT", token_budget=50).chunks == []


def test_a_file_is_never_tokenized_whole(folder, monkeypatch):
    """Tokens of a file of megabytes take gigabytes."""
    longest = []

    class Tokens(Counting):
        def count_tokens(self, texts):
            longest.append(max(map(len, texts)))
            return [len(text.split()) for text in texts]

    words = " ".join(f"word{n}" for n in range(40))
    parts = "".join(f"## Part {n}\n\n{words}. {words}.\n\n" for n in range(300))
    (folder / "long.md").write_text(f"# All\n\n{parts}")
    engine = Engine(MemoryStore(), model=Tokens())
    report = index_paths(engine, [folder / "long.md"], chunking=ChunkingConfig(size=64, overlap=0))
    assert report.chunks >= 300
    assert max(longest) <= 16 * 65
    texts = [record.text for batch in engine.collection.iterate() for record in batch]
    assert max(len(text.split()) for text in texts) <= 64


def test_rows_read_in_another_way_are_read_again(engine, folder):
    (folder / "r.jsonl").write_text('{"title": "tea", "body": "leaves", "pieces": "seven", "id": "x"}\n' * 2)
    index_paths(engine, folder, reading=ReadOptions(fields=RowFields(text=("title",), id="id")))
    by_body = ReadOptions(fields=RowFields(text=("body",), id="id"))
    assert index_paths(engine, folder, reading=by_body).changed == 1
    texts = [r.text for b in engine.collection.iterate() for r in b if r.metadata["kind"] == "rows"]
    assert texts == ["leaves", "leaves"]
    for reading in (by_body, None):
        assert index_paths(engine, folder, reading=reading).unchanged == 4


def test_include_never_prunes_what_is_there(engine, folder):
    index_paths(engine, folder)
    assert index_paths(engine, folder, includes=["*.py"], prune=True).deleted == 0
    assert index_paths(engine, folder, excludes=["*.py"], prune=True).deleted == 1


def test_another_retriever_may_not_leave_fields_out(folder):
    model = default_model()
    store = MemoryStore()
    index_paths(Engine(store, model=model, retriever="dense"), folder)
    index_paths(Engine(store, model=model, retriever="hybrid"), folder)
    with pytest.raises(ConfigError, match=r"was indexed for 'dense', and 'colbert' keeps other fields"):
        index_paths(Engine(store, model=model, retriever="colbert"), folder)


def test_a_collection_keeps_splitting_as_it_did(engine, folder):
    index_paths(engine, [folder], chunking=ChunkingConfig(size=64))
    (folder / "more.txt").write_text("word " * 200)
    report = index_paths(engine, [folder])
    assert report.chunks > 2
    with pytest.raises(ConfigError, match=r"size 64.*not by.*size 128"):
        index_paths(engine, [folder], chunking=ChunkingConfig(size=128))


def test_nothing_to_index(engine):
    with pytest.raises(ConfigError, match="name files or folders"):
        index_paths(engine, [])


def test_excludes_and_includes(engine, folder):
    index_paths(engine, [folder], excludes=["deep/"], includes=["*.md", "*.py"])
    assert sources(engine) == ["docs/tea.md"]


def test_uploaded_files_are_named_by_where_they_were_put_and_never_count_as_gone(engine, folder, tmp_path):
    index_paths(engine, [folder])
    put = tmp_path / "elsewhere" / "x"
    (put / "docs").mkdir(parents=True)
    (put / "docs" / "tea.md").write_text("# Tea\n\nTea was sent in.\n")
    (put / "notes.txt").write_text("Somebody handed this in.")
    report = index_paths(engine, [put / "docs", put / "notes.txt"], uploaded_to=put)
    assert report.files == {"docs/tea.md": 1, "notes.txt": 1}
    assert (report.new, report.changed) == (1, 1)  # the same name is the same document
    assert sources(engine) == ["docs/coffee.txt", "docs/deep/brew.py", "docs/tea.md", "notes.txt"]
    (folder / "tea.md").unlink()
    (folder / "coffee.txt").unlink()
    pruned = index_paths(engine, [tmp_path / "docs"], prune=True)
    assert pruned.deleted == 1
    assert sources(engine) == ["docs/deep/brew.py", "docs/tea.md", "notes.txt"]
    again = index_paths(engine, [put / "docs", put / "notes.txt"], uploaded_to=put)
    assert (again.unchanged, again.files) == (2, {})


def test_the_last_chunk_of_a_file_carries_their_number(engine, folder):
    """So that chunks are written as they are made."""
    rows = "".join(f'{{"id": "r{at % 30}", "text": "word{at % 10} says so"}}\n' for at in range(40))
    (folder / "rows.jsonl").write_text(rows)
    index_paths(engine, [folder / "rows.jsonl"])
    found = [one.metadata for batch in engine.collection.iterate() for one in batch]
    assert sorted(one["pieces"] for one in found) == [0] * 39 + [40]
    assert index_paths(engine, [folder / "rows.jsonl"]).unchanged == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_run_that_ends_anywhere_goes_on(folder, seed):
    """Interrupted at random batches, also while files change: the end is that of one whole run."""
    choose = random.Random(seed)
    index = Engine(MemoryStore(), model=WordBag(), retriever="dense")
    chunking = ChunkingConfig(size=12, overlap=0, smallest=0)

    def run(ends_after):
        def listen(progress):
            if progress.chunks >= ends_after:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            index_paths(index, folder, chunking=chunking, batch_size=2, listen=listen)

    for step in range(6):
        text = "\n\n".join(f"Paragraph {at} of step {choose.choice([0, step])} says so." for at in range(9))
        (folder / f"{choose.randrange(3)}.txt").write_text(text)
        run(choose.randrange(1, 20))
    run(10**9)
    whole = Engine(MemoryStore(), model=WordBag(), retriever="dense")
    index_paths(whole, folder, chunking=chunking)

    def kept(one):
        return {record.id: record.metadata for batch in one.collection.iterate() for record in batch}

    assert kept(index) == kept(whole)
    assert index_paths(index, folder).encoded == 0


def test_a_chunk_longer_than_the_model_reads_is_refused(folder, tmp_path):
    url = str(tmp_path / "new" / "index.dartboard")
    with pytest.raises(ConfigError, match="1024") as caught, Engine.open(url) as engine:
        index_paths(engine, folder, chunking=ChunkingConfig(size=1024))
    assert caught.value.field == "chunk_size" and "256" in str(caught.value)
    assert not engine.exists


def test_a_model_that_cannot_encode_leaves_no_index(folder):
    class Broken(WordBag):
        def encode(self, texts, batch_size=32):
            raise ModelError("the endpoint does not answer")

    engine = Engine(MemoryStore(), model=Broken(), retriever="dense")
    with pytest.raises(ModelError):
        index_paths(engine, folder)
    assert not engine.exists


def test_what_is_known_below_a_folder_that_cannot_be_read_is_not_gone(engine, folder, monkeypatch):
    index_paths(engine, folder)
    (folder / "coffee.txt").unlink()
    real = os.scandir

    def scandir(path):
        if str(path).endswith("/deep"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    report = index_paths(engine, folder, prune=True)
    assert [(problem.source, problem.code) for problem in report.problems] == [("docs/deep", "unreadable")]
    assert report.deleted == 1 and sources(engine) == ["docs/deep/brew.py", "docs/tea.md"]


def test_changes(engine, folder, monkeypatch):
    """New, changed, unchanged, gone, and one that vanishes between being found and being read."""
    (folder / "vanishing.txt").write_text("Here for now.")
    index_paths(engine, folder)
    (folder / "new.txt").write_text("A new file.")
    (folder / "coffee.txt").write_text("Another text.")
    (folder / "deep" / "brew.py").unlink()

    def listen(progress):
        (folder / "vanishing.txt").unlink(missing_ok=True)

    report = index_paths(engine, folder, prune=True, listen=listen)
    assert (report.new, report.changed, report.unchanged, report.deleted) == (1, 1, 1, 1)
    assert list(report.files) == ["docs/coffee.txt", "docs/new.txt", "docs/vanishing.txt"]
    assert [problem.source for problem in report.problems] == ["docs/vanishing.txt"]
    assert sources(engine) == ["docs/coffee.txt", "docs/new.txt", "docs/tea.md", "docs/vanishing.txt"]


def test_a_file_is_read_once(engine, folder, monkeypatch):
    opened = []
    real = Path.open

    def opening(path, *args, **kwargs):
        opened.append(path.name)
        return real(path, *args, **kwargs)

    index_paths(engine, folder)
    (folder / "coffee.txt").write_text("Another text.")
    (folder / "new.txt").write_text("A new file.")
    monkeypatch.setattr(Path, "open", opening)
    report = index_paths(engine, folder)
    assert (report.new, report.changed, report.unchanged) == (1, 1, 2)
    assert sorted(opened) == ["brew.py", "coffee.txt", "new.txt", "tea.md"]


def test_a_known_file_beyond_the_limit_stays_while_it_is_the_same(engine, folder):
    index_paths(engine, folder)
    small = ReadOptions(max_bytes=10)
    report = index_paths(engine, folder, reading=small)
    assert (report.unchanged, report.problems) == (3, [])
    (folder / "coffee.txt").write_text("Longer than ten bytes.")
    report = index_paths(engine, folder, reading=small)
    assert (report.unchanged, report.emptied, report.problems[0].code) == (2, 1, "size")


def test_hashes_are_compared_without_reading_whole_records(folder):
    with Engine.open("x.dartboard", model=Counting()) as engine:
        index_paths(engine, folder)
        assert (Path("x.dartboard")).exists()
        collection = engine.collection
        found = list(collection.iterate_metadata(where=Compare("pieces", ">=", 0)))
        whole = [record.metadata for batch in collection.iterate() for record in batch]
        assert sorted(map(str, found)) == sorted(map(str, whole))
