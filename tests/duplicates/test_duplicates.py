"""Duplicates of a collection: groups, causes, repeats, deletion and its undoing, on every store."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.duplicates import plan_deletion, undo_deletion
from dartboard.duplicates.groups import similar_groups, similarity_of
from dartboard.duplicates.report import word_diff
from dartboard.engine import Engine
from dartboard.errors import ConfigError, InvalidInputError, StoreFormatError
from dartboard.near_duplicates import near_duplicates
from dartboard.stores import Record
from dartboard.stores.memory import MemoryStore
from dartboard.utils import unit_rows
from tests.examples import examples
from tests.models import WordBag
from tests.stores.every_store import KINDS, store_of

FEE = (
    "The monthly fee of the basic plan is {} euros for every user, and it is billed at the end of the month "
    "to the card that is on file, without any further notice to the owner of the account."
)
TEXTS = {
    "1/fee": (FEE.format(5), "1", "fees.md"),
    "2/fee": (FEE.format(5), "2", "fees.md"),
    "3/fee": (FEE.format(5) + " Ask us.", "10", "old/fees.md"),
    "3/raised": (FEE.format(9), "10", "old/fees.md"),
    "1/tea": ("tea grows on hills and is picked by hand in spring", "1", "tea.md"),
    "2/tea": ("in spring tea is picked by hand and grows on hills", "2", "tea.md"),
    "1/roast": ("Coffee is roasted dark in small drums over a gas flame.", "1", "coffee.md"),
    "1/clay": ("Cups are made of clay and fired twice in a kiln.", "1", "cups.md"),
    "1/water": ("Water boils at a lower temperature in the mountains.", "1", "water.md"),
}


def filled(store, texts=TEXTS):
    engine = Engine(store, model=WordBag(), retriever="dense")
    vectors = engine.model.encode_documents([text for text, *_ in texts.values()])
    engine.create().upsert(
        engine.retriever.index(
            [
                Record(id, text, vector, {"version": version, "source": source, "title": id.split("/")[1]})
                for (id, (text, version, source)), vector in zip(texts.items(), vectors, strict=True)
            ]
        )
    )
    return engine


@pytest.fixture(scope="module", params=KINDS)
def any_engine(request, tmp_path_factory):
    with store_of(request.param, tmp_path_factory.mktemp(request.param)) as store:
        yield filled(store)


@pytest.fixture
def engine():
    return filled(MemoryStore())


def everything(engine):
    records = [record for batch in engine.collection.iterate() for record in batch]
    return {
        r.id: (r.text, r.metadata, r.embedding.tolist(), sorted(r.blobs), sorted(r.vectors)) for r in records
    }


def test_every_store_gives_the_same_report_and_takes_back_what_was_deleted(any_engine, tmp_path):
    report = any_engine.duplicates(similarity=0.9)
    assert (report.chunks, report.exact, report.near) == (9, 1, 1)
    groups = {group.ids: group.kind for group in report.groups}
    assert groups[("1/fee", "2/fee", "3/fee")] == "text"
    assert "3/raised" not in {id for ids, kind in groups.items() if kind == "text" for id in ids}
    assert groups[("1/fee", "3/raised")] == "vectors" and groups[("1/tea", "2/tea")] == "vectors"
    assert ("fees.md", "old/fees.md", 1) in report.causes["source"]
    assert ("1", "2", 1) in report.causes["version"]
    before = everything(any_engine)
    plan = plan_deletion(report, keep="newest")
    assert plan.kept == {"1/fee": "3/fee", "2/fee": "3/fee"}
    assert plan.delete(any_engine.collection, tmp_path / "undo") == ["1/fee", "2/fee"]
    assert everything(any_engine).keys() == before.keys() - plan.kept.keys()
    assert undo_deletion(any_engine.collection, tmp_path / "undo") == (2, 0)
    assert everything(any_engine) == before
    assert undo_deletion(any_engine.collection, tmp_path / "undo") == (0, 2)


def test_repeats_are_fewer_with_dartboard(engine):
    report = engine.duplicates(queries=["monthly fee of the basic plan"], similarity=0.9)
    assert report.repeats.top_k > report.repeats.dartboard and report.repeats.queries == 1
    assert "1 search, your queries" in report.answer()
    assert "titles of the corpus" in engine.duplicates().answer()
    assert engine.duplicates() == engine.duplicates()
    assert report.to_json()["groups"][0]["examples"][2]["diff"][-1] == ["added", "Ask us."]


def test_the_threshold_is_that_of_selection():
    sigma = 0.08
    apart = (1 - similarity_of(sigma)) / 2
    assert np.exp(-(apart**2) / (2 * sigma**2)) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ({"keep": "first"}, {"2/fee", "3/fee"}),
        ({"keep": "longest"}, {"1/fee", "2/fee"}),
        ({"by": "exact"}, {"2/fee"}),
        ({"by": "vectors"}, {"2/fee", "3/fee", "3/raised", "2/tea"}),
        ({"keep": "newest", "newest_by": "version"}, {"1/fee", "2/fee"}),
    ],
)
def test_what_goes_by_each_rule(engine, options, gone):
    assert plan_deletion(engine.duplicates(similarity=0.9), **options).kept.keys() == gone


def test_only_what_is_a_duplicate_of_the_kept_one_goes():
    words = [f"{one}{two}" for one in "abcdefghijklm" for two in "nopqrstuvw"]
    texts = {"a": words[:70], "b": words[:100], "c": [*words[:70], *words[100:]]}
    engine = filled(MemoryStore(), {f"1/{id}": (" ".join(some), "1", "x.md") for id, some in texts.items()})
    report = engine.duplicates(vectors=False)
    assert [group.ids for group in report.groups] == [("1/a", "1/b", "1/c")]
    assert plan_deletion(report).kept == {"1/b": "1/a", "1/c": "1/a"}
    assert plan_deletion(report, keep="longest").kept == {"1/a": "1/b"}  # 70 % of c is not enough


@given(st.data())
@examples(30)
def test_whatever_is_preferred_each_one_that_goes_repeats_the_one_that_stays(data):
    words = [f"{one}{two}" for one in "abcdefghijklm" for two in "nopqrstuvw"]
    cuts = st.tuples(st.integers(0, 40), st.integers(60, 130), st.integers(0, 3))
    texts = {
        f"{at}/x": (" ".join(words[start:end]), str(version), "x.md")
        for at, (start, end, version) in enumerate(data.draw(st.lists(cuts, min_size=2, max_size=12)))
    }
    report = filled(MemoryStore(), texts).duplicates(similarity=0.9)
    place = {id: at for at, id in enumerate(report.corpus.ids)}
    for keep in ("first", "longest", "newest"):
        kept = plan_deletion(report, keep=keep).kept
        assert not kept.keys() & set(kept.values())  # what is kept stays
        for gone, stays in kept.items():
            assert near_duplicates([texts[stays][0], texts[gone][0]]).tolist() == [0, 0]
        for gone, stays in plan_deletion(report, keep=keep, by="vectors").kept.items():
            cosine = report.corpus.vectors[place[gone]] @ report.corpus.vectors[place[stays]]
            alike = near_duplicates([texts[stays][0], texts[gone][0]]).tolist() == [0, 0]
            assert alike or cosine >= 0.9 - 1e-4


def test_a_cut_undo_file_changes_nothing(engine, tmp_path):
    words = [f"{one}{two}" for one in "abcdefgh" for two in "ijklmnopqr"]
    texts = {f"{at:04}/x": (" ".join(words), "1", "x.md") for at in range(2500)}
    engine = filled(MemoryStore(), texts)
    before = everything(engine)
    whole = tmp_path / "undo"
    assert len(plan_deletion(engine.duplicates(vectors=False)).delete(engine.collection, whole)) == 2499
    cut = tmp_path / "cut"
    data = whole.read_bytes()
    for length in (0, len(data) // 2, len(data) * 9 // 10, len(data) - 1):
        cut.write_bytes(data[:length])
        with pytest.raises(StoreFormatError):
            undo_deletion(engine.collection, cut)
        assert engine.collection.count() == 1
    assert undo_deletion(engine.collection, whole) == (2499, 0)
    assert everything(engine) == before


def test_a_group_that_changes_meanwhile_stays(engine, tmp_path):
    plan = plan_deletion(engine.duplicates(vectors=False), keep="first")
    changed = replace(engine.collection.get(["2/fee"])[0], text="Something else entirely.")
    engine.collection.upsert([changed])
    assert plan.delete(engine.collection, tmp_path / "one") == ["3/fee"]
    assert engine.collection.get(["2/fee"])[0].text == "Something else entirely."
    undo_deletion(engine.collection, tmp_path / "one")
    plan = plan_deletion(engine.duplicates(vectors=False), keep="first")
    engine.delete(["1/fee"])  # the one that was to stay
    assert plan.kept == {"3/fee": "1/fee"} and plan.delete(engine.collection, tmp_path / "two") == []
    assert len(engine.collection.get(["3/fee"])) == 1


def test_a_change_between_saving_and_deleting_is_noticed(engine, tmp_path):
    plan = plan_deletion(engine.duplicates(vectors=False), keep="first")

    def meddle(step, done, total):
        if step == "saving":
            record = engine.collection.get(["2/fee"])[0]
            engine.collection.upsert([replace(record, metadata={**record.metadata, "note": "mine"})])

    assert plan.delete(engine.collection, tmp_path / "undo", listen=meddle) == ["3/fee"]
    assert engine.collection.get(["2/fee"])[0].metadata["note"] == "mine"


def test_an_interrupted_deletion_loses_nothing(engine, tmp_path):
    before = everything(engine)

    def interrupt(step, done, total):
        if step == "deleting":
            raise KeyboardInterrupt

    plan = plan_deletion(engine.duplicates(vectors=False))
    with pytest.raises(KeyboardInterrupt):
        plan.delete(engine.collection, tmp_path / "undo", listen=interrupt)
    undo_deletion(engine.collection, tmp_path / "undo")
    assert everything(engine) == before
    with pytest.raises(ConfigError, match="exists already"):
        plan.delete(engine.collection, tmp_path / "undo")


@given(st.integers(0, 2**32), st.integers(1, 1500), st.floats(0.3, 1))
@examples(20)
def test_groups_are_those_of_a_plain_loop(seed, n, least):
    rng = np.random.default_rng(seed)
    vectors = unit_rows(rng.standard_normal((n, 6)).astype(np.float32))
    leaders: list[int] = []
    expected = []
    close = vectors @ vectors.T
    for row in range(n):
        own = next((leader for leader in leaders if close[row, leader] >= least - 1e-5), row)
        leaders += [row] if own == row else []
        expected.append(own)
    if np.abs(close - (least - 1e-5)).min() > 1e-6:  # else rounding decides
        assert similar_groups(vectors, least).tolist() == expected


def test_the_diff_shows_what_changed():
    long = " ".join(["word"] * 50)
    assert word_diff(f"{long} five", f"{long} six")[1:] == [("removed", "five"), ("added", "six")]
    assert word_diff("a b", "a b") == [("same", "a b")] and word_diff("", "a") == [("added", "a")]


def test_bad_input_is_refused(engine, tmp_path):
    empty = Engine(MemoryStore(), model=WordBag(), retriever="dense")
    empty.create()
    with pytest.raises(InvalidInputError, match="no chunks"):
        empty.duplicates()
    with pytest.raises(InvalidInputError, match="has a word"):
        filled(MemoryStore(), {"1/a": ("— …", "1", "a.md"), "1/b": ("!!!", "1", "b.md")}).duplicates()
    with pytest.raises(InvalidInputError, match=r"'colour'.*source, title, version"):
        engine.duplicates(fields=["colour"])
    with pytest.raises(InvalidInputError, match="blank"):
        engine.duplicates(queries=[" "])
    with pytest.raises(ConfigError, match="cosine"):
        engine.duplicates(similarity=1.5)
    report = engine.duplicates(vectors=False)
    for options, message in (
        ({"keep": "best"}, "newest, longest, first"),
        ({"by": "vectors"}, "not compared"),
        ({"keep": "newest", "newest_by": "colour"}, "colour"),
        ({"keep": "newest", "newest_by": "title"}, "did not read 'title'"),
    ):
        with pytest.raises((ConfigError, InvalidInputError), match=message):
            plan_deletion(report, **options)
    other = Engine(MemoryStore(), model=WordBag(8), retriever="dense")
    other.create()
    plan_deletion(report).delete(engine.collection, tmp_path / "undo")
    with pytest.raises(StoreFormatError, match="nothing was changed"):
        undo_deletion(other.collection, tmp_path / "undo")
