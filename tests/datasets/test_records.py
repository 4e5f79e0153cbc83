"""Rows are read one by one, and a bad one is named by its file and line."""

import gzip

import pytest

from dartboard.datasets.records import Place, Record, count_lines, json_array, json_lines, lines, need_file
from dartboard.errors import DatasetError
from tests.datasets.folders import write_text


def test_lines_are_numbered_and_blank_ones_skipped(tmp_path):
    path = write_text(tmp_path / "a.txt", "\ufefffirst\r\n\n  \nsecond \u2028 still second")
    assert [(place.line, line) for place, line in lines(path)] == [
        (1, "first"),
        (4, "second \u2028 still second"),
    ]


def test_compressed_files_are_read_as_they_are(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b'{"a": 1}\n{"a": 2}'))
    assert [row.fields["a"] for row in json_lines(need_file(tmp_path / "a.jsonl", "it"))] == [1, 2]
    assert count_lines(tmp_path / "a.jsonl.gz") == 2


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: not JSON"),
        ('{"a": 1}\n\n[1]\n', "line 3: expected a JSON object, got list"),
        ("[" * 100_000, "line 1: not JSON"),
    ],
)
def test_malformed_json_is_named_by_line(tmp_path, content, complaint):
    path = write_text(tmp_path / "bad.jsonl", content)
    with pytest.raises(DatasetError, match=f"bad.jsonl, {complaint}"):
        list(json_lines(path))


def test_other_encodings_are_named_by_line(tmp_path):
    (tmp_path / "latin.txt").write_bytes("gut\nschön\n".encode("latin-1"))
    with pytest.raises(DatasetError, match=r"latin.txt, line 2: not UTF-8"):
        list(lines(tmp_path / "latin.txt"))


def test_missing_files_say_what_they_are_for(tmp_path):
    with pytest.raises(DatasetError, match=r"nothing.txt is missing: it holds the queries"):
        need_file(tmp_path / "nothing.txt", "it holds the queries")
    with pytest.raises(DatasetError, match=r"cannot be read"):
        list(lines(tmp_path / "nothing.txt"))


def test_arrays_and_lines_are_both_json(tmp_path):
    array = write_text(tmp_path / "array.json", ' [{"a": 1},\n {"a": 2}]')
    by_line = write_text(tmp_path / "lines.json", '{"a": 1}\n{"a": 2}')
    for path in (array, by_line):
        assert [row.fields for row in json_array(path)] == [{"a": 1}, {"a": 2}]
    with pytest.raises(DatasetError, match=r"array.json, row 2: 'b' is missing"):
        [row.text("b") if number else None for number, row in enumerate(json_array(array))]
    with pytest.raises(DatasetError, match=r"x.json, row 1: expected an object"):
        list(json_array(write_text(tmp_path / "x.json", "[1]")))
    with pytest.raises(DatasetError, match=r"y.json, line 2: not JSON"):
        list(json_array(write_text(tmp_path / "y.json", "[1,\n")))


@pytest.mark.parametrize(
    ("read", "complaint"),
    [
        (lambda row: row.text("list"), "'list' must be a string, got list"),
        (lambda row: row.text("flag"), "'flag' must be a string, got bool"),
        (lambda row: row.text("x", "y"), "'x' or 'y' is missing"),
        (lambda row: row.identifier("empty"), "'empty' is empty"),
        (lambda row: row.list("empty"), "'empty' must be a list, but is a str"),
        (lambda row: row.list("x"), "'x' must be a list, but is missing"),
        (lambda row: row.mapping("list"), "'list' must be an object, got list"),
    ],
)
def test_fields_are_checked(tmp_path, read, complaint):
    row = Record(Place(tmp_path / "f", 7), {"list": [], "empty": "", "flag": True, "number": 3})
    with pytest.raises(DatasetError, match=f"line 7: {complaint}"):
        read(row)
    assert row.text("number") == "3"
    assert row.text("x", default="d") == "d"
    assert row.list("x", required=False) == []
    assert row.mapping("x") == {}


def test_a_damaged_archive_is_named(tmp_path):
    whole = gzip.compress(b'{"a": 1}\n' * 2000)
    for name, content in (("cut.jsonl.gz", whole[: len(whole) // 2]), ("plain.jsonl.gz", b"no archive")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DatasetError, match=rf"{name} is damaged or no gzip file"):
            list(json_lines(tmp_path / name))
        with pytest.raises(DatasetError, match=name):
            count_lines(tmp_path / name)
