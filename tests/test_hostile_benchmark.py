"""Peak memory of hostile inputs: what was measured is within the limit, and what the page shows."""

from benchmarks import hostile_inputs, hostile_memory, tables

PAGE = tables.ROOT / "docs" / "security.md"


def test_every_input_was_measured_and_is_within_the_limit():
    found = tables.results("hostile_memory")
    assert list(found["files"]) == list(hostile_inputs.FILES)
    assert list(found["requests"]) == list(hostile_inputs.REQUESTS)
    for name, row in (found["files"] | found["requests"]).items():
        assert row["above"] <= hostile_memory.LIMIT, name
        assert row.get("after", 0) <= hostile_memory.LIMIT / 4, name


def test_the_page_shows_what_was_measured():
    assert PAGE.read_text() == tables.fresh_sections()[PAGE], "run: python benchmarks/tables.py"


def test_the_highest_of_a_kind_is_shown():
    row = {"above": 5, "seconds": 1.0, "outcome": ""}
    files = {"pdf-a.pdf": row, "pdf-b.pdf": row | {"above": 70}}
    requests = {"select: a": row | {"after": -3}}
    made = hostile_memory.table({"files": files, "requests": requests})
    assert "| files: pdf | 2 | 70 | pdf-b.pdf | the process ends |" in made
    assert "| requests: select | 1 | 5 | select: a | 0 MB |" in made
