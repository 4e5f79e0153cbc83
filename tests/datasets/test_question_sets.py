"""RGB, HotpotQA and MuSiQue in their original formats."""

import json

import pytest

from dartboard.datasets import load_hotpotqa, load_musique, load_rgb
from dartboard.errors import DatasetError
from tests.datasets.folders import write_jsonl, write_text

RGB = [
    {
        "id": 0,
        "query": "Who and when?",
        "answer": [["January 2", "Jan 2"], "Frank"],
        "positive": [["On Jan 2.", "January 2, it was."], ["By Frank."]],
        "negative": ["Unrelated.", "By Frank.", ""],
    },
    {
        "id": 1,
        "query": "Where?",
        "answer": ["Tampa"],
        "positive": ["In Tampa."],
        "negative": ["Unrelated."],
        "positive_wrong": ["In Glendale."],
        "fakeanswer": "Glendale",
    },
]
HOTPOT = [
    {
        "_id": "h1",
        "question": "Which band?",
        "answer": "Rush",
        "type": "bridge",
        "supporting_facts": [["Neil", 1], ["Hero", 0], ["Neil", 0]],
        "context": [["Hero", ["A song.", " By Rush."]], ["Neil", ["A drummer."]], ["Other", ["No."]]],
    },
    {
        "id": "h2",
        "question": "From the hub?",
        "answer": "yes",
        "supporting_facts": {"title": ["Other"], "sent_id": [0]},
        "context": {"title": ["Other", "More"], "sentences": [["No."], ["Much."]]},
    },
]
MUSIQUE = [
    {
        "id": "2hop__1_2",
        "question": "Who led it?",
        "answer": "Hall",
        "answer_aliases": ["G. Hall", "Hall"],
        "answerable": True,
        "paragraphs": [
            {"idx": 0, "title": "Hall", "paragraph_text": "Hall led APA.", "is_supporting": True},
            {"idx": 1, "title": "X", "paragraph_text": "Nothing.", "is_supporting": False},
            {"idx": 2, "title": "Journal", "paragraph_text": "APA published it.", "is_supporting": True},
        ],
        "question_decomposition": [{"paragraph_support_idx": 2}, {"paragraph_support_idx": 0}],
    },
    {"id": "no", "question": "?", "answer": "", "answerable": False, "paragraphs": []},
]


def test_rgb_pools_passages_and_reads_facets(tmp_path):
    data = load_rgb(write_jsonl(tmp_path / "en_int.json", RGB))
    assert data.name == "rgb_en_int"
    assert [passage.text for passage in data.passages] == [
        "On Jan 2.",
        "January 2, it was.",
        "By Frank.",
        "Unrelated.",
        "In Tampa.",
        "In Glendale.",
    ]
    assert data.facets == {"0": {"1": ["d00000", "d00001"], "2": ["d00002"]}, "1": {"1": ["d00004"]}}
    assert data.qrels == {
        "0": {"d00003": 0, "d00002": 1, "d00000": 1, "d00001": 1},
        "1": {"d00003": 0, "d00005": 0, "d00004": 1},
    }
    assert data.kernels == {"1": ["d00004"]}
    assert data.answers == {"0": ["January 2", "Jan 2", "Frank"], "1": ["Tampa"]}
    assert data.pools["1"] == ["d00004", "d00003", "d00005"]
    assert data.metadata["positive_wrong"] == {"1": ["d00005"]}
    assert data.metadata["answer_parts"] == {"0": [["January 2", "Jan 2"], ["Frank"]], "1": [["Tampa"]]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"id": 0}, "line 2: question id '0' occurs twice, first at line 1"),
        ({"query": None}, "line 2: 'query' is missing"),
        ({"query": " "}, "line 2: 'query' is empty"),
        ({"positive": "text"}, "line 2: 'positive' must be a list"),
        ({"positive": ["a", ["b"]]}, "line 2: 'positive' mixes strings and lists"),
        ({"negative": [3]}, "line 2: 'negative' must hold strings, got int"),
        ({"positive_wrong": {}}, "line 2: 'positive_wrong' must be a list"),
    ],
)
def test_malformed_rgb_rows_are_named(tmp_path, change, complaint):
    path = write_jsonl(tmp_path / "en.json", [RGB[0], RGB[1] | change])
    with pytest.raises(DatasetError, match=f"en.json, {complaint}"):
        load_rgb(path)


def test_hotpotqa_kernels_are_the_supporting_paragraphs(tmp_path):
    data = load_hotpotqa(write_text(tmp_path / "hotpot_dev.json", json.dumps(HOTPOT)))
    assert data.name == "hotpot_dev"
    texts = {passage.title: (passage.id, passage.text) for passage in data.passages}
    assert texts == {
        "Hero": ("p00000", "A song. By Rush."),
        "Neil": ("p00001", "A drummer."),
        "Other": ("p00002", "No."),
        "More": ("p00003", "Much."),
    }
    assert data.kernels == {"h1": ["p00001", "p00000"], "h2": ["p00002"]}
    assert data.facets["h1"] == {"1": ["p00001"], "2": ["p00000"]}
    assert data.qrels["h1"] == {"p00000": 1, "p00001": 1, "p00002": 0}
    assert data.pools["h2"] == ["p00002", "p00003"]
    assert data.answers == {"h1": ["Rush"], "h2": ["yes"]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"context": [["Hero", "text"]]}, "row 2: 'context' must pair each title with a list"),
        ({"context": ["Hero"]}, "row 2: 'context' must be a list of pairs"),
        ({"supporting_facts": [["Nobody", 0]]}, "row 2: supporting fact 'Nobody' is not among the titles"),
        ({"supporting_facts": []}, "row 2: 'supporting_facts' is empty"),
        ({"id": "h1"}, "row 2: question id 'h1' occurs twice, first at row 1"),
        ({"question": 1.5, "id": ""}, "row 2: '_id' is empty"),
    ],
)
def test_malformed_hotpotqa_rows_are_named(tmp_path, change, complaint):
    path = write_text(tmp_path / "hotpot.json", json.dumps([HOTPOT[0], HOTPOT[1] | change]))
    with pytest.raises(DatasetError, match=complaint):
        load_hotpotqa(path)


def test_musique_kernels_follow_the_reasoning(tmp_path):
    data = load_musique(write_jsonl(tmp_path / "musique_ans.jsonl", MUSIQUE))
    assert data.queries == {"2hop__1_2": "Who led it?"}
    assert data.kernels == {"2hop__1_2": ["p00002", "p00000"]}
    assert data.qrels == {"2hop__1_2": {"p00000": 1, "p00001": 0, "p00002": 1}}
    assert data.answers == {"2hop__1_2": ["Hall", "G. Hall"]}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"paragraphs": [{}]}, "line 1: each of 'paragraphs' must be an object with 'paragraph_text'"),
        ({"paragraphs": [{"paragraph_text": "a"}]}, "line 1: no paragraph has 'is_supporting'"),
        (
            {"paragraphs": [{"paragraph_text": "a", "idx": [0]}]},
            "line 1: 'idx' of a paragraph must be a unique number",
        ),
        (
            {"paragraphs": [{"paragraph_text": "a", "idx": 1}, {"paragraph_text": "b", "idx": 1}]},
            "line 1: 'idx' of a paragraph must be a unique number, got 1",
        ),
        ({"paragraphs": None}, "line 1: 'paragraphs' must be a list, but is missing"),
    ],
)
def test_malformed_musique_rows_are_named(tmp_path, change, complaint):
    with pytest.raises(DatasetError, match=complaint):
        load_musique(write_jsonl(tmp_path / "m.jsonl", [MUSIQUE[0] | change]))
