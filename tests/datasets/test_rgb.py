"""RGB in its original format."""

import pytest

from dartboard.datasets import load_rgb
from dartboard.errors import DatasetError
from tests.datasets.folders import write_jsonl

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
