"""The claims under ``examples/claims``: whole, consistent, and what the folder's page says they are."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from dartboard.datasets import list_datasets, load_beir

FOLDER = Path(__file__).parents[2] / "examples" / "claims"
SHORTEST, LONGEST = 45, 90
SENTENCE = re.compile(r"(?<=[.!?]) +")


@pytest.fixture(scope="module")
def claims():
    return load_beir(FOLDER)


@pytest.fixture(scope="module")
def abstracts(claims):
    return list(claims.passages)


def rows(name):
    return [json.loads(line) for line in (FOLDER / name).read_text("utf-8").splitlines()]


def test_it_is_found_and_of_the_size_that_its_page_says(claims, abstracts):
    listed = {info.name: info for info in list_datasets(FOLDER.parent)}["claims"]
    assert (listed.format, listed.num_chunks, listed.num_queries) == ("beir", 98, 50)
    assert (len(abstracts), len(claims)) == (98, 50)
    page = " ".join((FOLDER / "README.md").read_text("utf-8").split())
    assert f"{len(claims)} claims, and {len(abstracts)} abstracts" in page
    assert "Apache-2.0" in page and "invented and simplified" in page


def test_ids_are_unique_and_files_hold_what_beir_has(abstracts):
    assert len({one.id for one in abstracts}) == len(abstracts)
    assert {frozenset(row) for row in rows("corpus.jsonl")} == {frozenset({"_id", "title", "text"})}
    queries = rows("queries.jsonl")
    assert len({row["_id"] for row in queries}) == len({row["text"] for row in queries}) == len(queries)
    header = (FOLDER / "qrels" / "test.tsv").read_text("utf-8").splitlines()[0]
    assert header == "query-id\tcorpus-id\tscore"


def test_every_claim_has_evidence_and_all_evidence_is_there(claims, abstracts):
    there = {one.id for one in abstracts}
    assert claims.qrels.keys() == {row["_id"] for row in rows("queries.jsonl")}
    for claim, judged in claims.qrels.items():
        assert 1 <= len(judged) <= 3 and set(judged.values()) == {1}, claim
        assert judged.keys() <= there, claim


def test_findings_are_the_evidence_in_groups(claims):
    assert claims.facets.keys() == claims.qrels.keys()
    for claim, findings in claims.facets.items():
        grouped = [one for ids in findings.values() for one in ids]
        assert sorted(grouped) == sorted(claims.qrels[claim]), claim
    sizes = Counter(len(findings) for findings in claims.facets.values())
    assert sizes == {1: 41, 2: 9}
    repeated = [claim for claim, findings in claims.facets.items() if max(map(len, findings.values())) > 1]
    assert len(repeated) == 11


def test_no_two_abstracts_are_the_same_and_no_sentence_comes_twice(abstracts):
    for part in ("title", "text"):
        assert len({getattr(one, part) for one in abstracts}) == len(abstracts)
    sentences = Counter(sentence for one in abstracts for sentence in SENTENCE.split(one.text))
    assert [sentence for sentence, times in sentences.items() if times > 1] == []


def test_abstracts_are_of_the_length_of_short_abstracts(abstracts):
    lengths = {one.id: len(one.text.split()) for one in abstracts}
    assert {name: count for name, count in lengths.items() if not SHORTEST <= count <= LONGEST} == {}


def test_no_claim_is_a_sentence_of_an_abstract(claims, abstracts):
    everything = "\n".join(f"{one.title}\n{one.text}" for one in abstracts).casefold()
    assert [text for text in claims.queries.values() if text.rstrip(".").casefold() in everything] == []
