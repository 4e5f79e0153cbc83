"""A question becomes a text: within its budget, merged, numbered, over every store."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard import default_model
from dartboard.context import FORMATS, ORDERS
from dartboard.engine import Engine, index_paths
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.ingest import ChunkingConfig
from dartboard.stores.memory import MemoryStore
from tests.examples import examples
from tests.stores.every_store import KINDS, store_of
from tests.tea import filled

GUIDE = """# Keys

Rotate the signing keys every ninety days with the command keys rotate. The old key stays valid for a day.
During that day both keys are accepted, so that clients have time. Afterwards the old one is refused.

## Limits

A client may send one hundred requests in a minute. The answer to more is 429, with a header that says when to
come back. Limits are set for each key. A batch counts as one request for every ten documents in it.

## Logs

Logs are kept for a week and then deleted. They hold the path, the status and the time of a request, and never
its body. The time is in milliseconds. Errors are kept for a month.
"""
NOTE = "The kitchen is closed on Sundays. Tea is served at five in the garden, and coffee whenever you like."
QUERY = "How long is the old signing key valid?"


@pytest.fixture(scope="module", params=KINDS)
def engine(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "guide.md").write_text(GUIDE)
    (folder / "note.txt").write_text(NOTE)
    with store_of(request.param, folder) as store:
        engine = Engine(store, model=default_model(), retriever="dense")
        small = ChunkingConfig(size=24, overlap=8, smallest=4)
        index_paths(engine, [folder / "guide.md", folder / "note.txt"], chunking=small)
        yield engine


def words(text):
    return text.split()


def test_neighbours_complete_a_cut_passage(engine):
    found = engine.context(QUERY, token_budget=120)
    assert found.tokens <= 120 and found.text == str(found)
    first = found.passages[0]
    assert len(first.chunk_ids) > 1 and "guide.md" in first.source and "Keys" in first.heading
    assert "valid for a day" in first.text
    assert (
        words(first.text)
        == words(GUIDE)[words(GUIDE).index(words(first.text)[0]) :][: len(words(first.text))]
    )


def test_nothing_is_repeated(engine):
    """Chunks overlap by eight words; the context has every sentence once."""
    text = engine.context(QUERY, token_budget=1000, relevance_below=0).text
    for sentence in re.findall(r"[A-Z][^.#]+\.", GUIDE):
        assert " ".join(words(text)).count(" ".join(words(sentence))) == 1, sentence


@pytest.mark.parametrize(("format", "order"), [*zip(FORMATS, ORDERS, strict=True)])
def test_never_a_token_over_the_budget(engine, format, order):
    for budget in (260, 333, 700, 5000):  # characters, of which JSON needs most
        found = engine.context(QUERY, token_budget=budget, format=format, order=order, tokenizer=len)
        assert 0 < found.tokens == len(found.text) <= budget
        assert [one.number for one in found.passages] == list(range(1, len(found.passages) + 1))


def test_a_budget_that_fits_nothing(engine):
    with pytest.raises(ConfigError, match=r"token_budget 3 is too small: the shortest of \d+ candidates has"):
        engine.context(QUERY, token_budget=3)


@pytest.mark.parametrize(
    "count", [lambda text: 1 + len(text) ** 2 // 500, lambda text: 5], ids=["square", "5"]
)
def test_tokens_that_do_not_add_up(engine, count):
    for budget in (130, 600, 4000):
        try:
            found = engine.context(QUERY, token_budget=budget, tokenizer=count)
        except ConfigError as error:
            assert f"token_budget {budget} is too small: the shortest of" in str(error)
        else:
            assert 0 < count(found.text) <= found.tokens <= budget
    assert engine.context(QUERY, token_budget=4000, tokenizer=count).passages


def test_citations_lead_to_chunks(engine):
    found = engine.context(QUERY, token_budget=240, also=["When is tea served?"])  # one passage of each file
    cited = found.citations("A day [2], see also [1] and [77].")
    assert list(cited) == [2, 1]
    known = engine.collection.get(cited[1])
    assert [record.id for record in known] == list(found.passages[0].chunk_ids)


def test_without_neighbours(engine):
    plain = engine.context(QUERY, token_budget=60, expand=False)
    searched = engine.search(QUERY, token_budget=60)
    assert {id for one in plain.passages for id in one.chunk_ids} <= {
        chunk.id for chunk in engine.search(QUERY, k=100).chunks
    }
    assert plain.result.chunks[0].id == searched.chunks[0].id


def test_results_are_as_json(engine):
    told = engine.context(QUERY, token_budget=100).to_json()
    assert json.loads(json.dumps(told))["passages"][0]["chunk_ids"] == told["passages"][0]["chunk_ids"]
    assert 0 < told["coverage"] <= 1 and told["relevance"]["verdict"] in ("relevant", "unknown")


def in_memory():
    """Ten sentences whose metadata do not say where they stand."""
    return filled(MemoryStore())


def test_orders():
    engine = in_memory()
    by_gain = engine.context("tea", token_budget=500).passages
    gains = [one.gain for one in by_gain]
    assert gains == sorted(gains, reverse=True)
    ends = [one.gain for one in engine.context("tea", token_budget=500, order="ends").passages]
    assert ends[0] == gains[0] and ends[-1] == gains[1] and min(ends) in ends[len(ends) // 2 - 1 :][:2]
    assert sorted(ends) == sorted(gains)


def test_order_of_the_source(engine):
    found = engine.context("keys limits logs of a request", token_budget=150, order="source")
    lines = [one.source for one in found.passages if "guide.md" in one.source]
    assert lines == sorted(lines, key=lambda place: int(place.rpartition(":")[2]))


def test_options_of_a_search_hold(engine):
    found = engine.context(QUERY, token_budget=500, where='kind = "text"')
    assert ["note.txt" in one.source for one in found.passages] == [True]
    first = engine.context(QUERY, token_budget=100)
    seen = [id for one in first.passages for id in one.chunk_ids]
    more = engine.context(QUERY, token_budget=100, seen=seen)
    assert not set(seen) & {id for one in more.passages for id in one.chunk_ids}
    capped = engine.context(QUERY, token_budget=500, k=1)
    assert len(capped.result) == 1
    assert len(engine.context(QUERY, token_budget=100, method="top_k").passages)


def test_neighbours_obey_the_filter_and_what_is_excluded(engine):
    chunks = engine.search(QUERY, k=100).chunks
    first = chunks[0].metadata["position"]
    near = {one.id for one in chunks if abs(one.metadata["position"] - first) == 1}
    allowed = engine.context(QUERY, token_budget=300, where=f"position = {first}")
    assert {chunk.metadata["position"] for chunk in allowed.result.chunks} == {first}
    without = engine.context(QUERY, token_budget=300, exclude=sorted(near))
    assert not near & {chunk.id for chunk in without.result.chunks}


def test_nothing_matches(engine):
    found = engine.context(QUERY, token_budget=100, where="position > 99")
    assert found.text == "" and found.tokens == 0 and found.passages == ()
    assert found.to_json()["coverage"] == 0.0 and found.citations("[1]") == {}


def test_the_default_budget_and_what_is_refused(engine):
    assert engine.context(QUERY).token_budget == 2000
    with pytest.raises(ConfigError, match="order must be one of gain, source, ends, got 'best'"):
        engine.context(QUERY, order="best")
    with pytest.raises(ConfigError, match="format must be one of markdown, xml, json"):
        engine.context(QUERY, format="html")
    with pytest.raises(ConfigError, match="a context needs a token_budget"):
        engine.context(QUERY, token_budget=None, k=3)
    with pytest.raises(ConfigError, match="offset counts picks"):
        engine.context(QUERY, token_budget=100, offset=5)
    with pytest.raises(ConfigError, match="there is no tokenizer file"):
        engine.context(QUERY, tokenizer="missing/tokenizer.json")
    with pytest.raises(InvalidInputError):
        engine.context("  ")


@examples(40)
@given(budget=st.integers(8, 120), split=st.sampled_from([1, 3, 7]))
def test_any_tokenizer_is_obeyed(budget, split):
    """Also one whose counts do not add up: a token is ``split`` characters, wherever words end."""
    engine = in_memory()

    def pieces(text):
        return -(-len(text) // split)

    try:
        found = engine.context("tea on hills", token_budget=budget, tokenizer=pieces)
    except ConfigError as error:
        assert "too small" in str(error)
    else:
        assert pieces(found.text) <= budget
