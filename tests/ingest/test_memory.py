"""Files that would take far more memory than they have bytes: bounded, or left out with a message."""

import json
import tracemalloc
import zlib

import pytest

from benchmarks import hostile_inputs as hostile
from dartboard.errors import ConfigError
from dartboard.ingest import Document, Problem, ReadOptions, chunk, read_bytes, read_path, tabular
from dartboard.ingest import pdf as pdf_reader
from dartboard.ingest.chunker import sections_of
from dartboard.ingest.text import clean, one_line, tidy
from tests.ingest.files import pdf_of, read_one, text_document

MB = 1_000_000


def peak(work) -> int:
    """The most that Python held at a time while this ran, in bytes."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def left_out(data, source, *words, code="size", options=None) -> None:
    problem = read_one(data, source, options)
    assert isinstance(problem, Problem), problem
    assert problem.code == code
    for word in words:
        assert word in problem.reason


# ---- text


@pytest.mark.parametrize("source", ["a.txt", "a.md", "a.rst", "a.html", "a.py"])
def test_a_text_has_a_limit(source):
    options = ReadOptions(max_characters=1000)
    left_out("word " * 201, source, "1,000 characters", "split it", options=options)
    assert read_one("word " * 200, source, options).text.startswith("word")


def test_the_limit_is_a_number():
    with pytest.raises(ConfigError, match="max_characters"):
        ReadOptions(max_characters=0)


@pytest.mark.parametrize("part", [". ", "a\n", "\n", "- a\n", "```\n```\n"])
def test_splitting_takes_little_more_than_its_pieces(part):
    text = "start " + part * (60_000 // len(part)) + " end"
    document = read_one(text, "a.md")
    assert peak(lambda: chunk(document)) < 3 * MB


@pytest.mark.parametrize("part", ["# a\n", "a\n=\n\n"])
def test_very_many_headings_open_no_further_sections(part):
    text = part * 60_000
    document = read_one(text, "a.md" if part.startswith("#") else "a.rst")
    found = sections_of(document)
    assert len(found) == 50_000
    assert found[-1].end == len(document.text) == len(text)


def test_long_front_matter_is_text():
    text = "---\nlist:\n" + "- word\n" * 20_000 + "---\nbody"
    document = read_one(text, "a.md")
    assert document.metadata == {} and document.text == text
    assert read_one("---\nlist:\n- word\n---\nbody", "a.md").metadata == {"list": ["word"]}


@pytest.mark.parametrize("function", [tidy, clean, one_line])
@pytest.mark.parametrize(
    "part", ["ab\u0301  c\r\n", "a\u0301", "\U0001f4a9\u200b", "long words here. ", "\n\n\n\nx"]
)
def test_blocks_of_a_long_text_are_cleaned_as_the_whole(function, part):
    """A text is cleaned in blocks, wherever they end."""
    longest = part * (250_000 // len(part))
    once = function(part * 1000)
    cleaned = function(longest)
    assert cleaned[:500] == once[:500] and cleaned[-500:] == once[-500:]
    assert cleaned == function(cleaned)


# ---- HTML


def test_html_with_very_many_tags():
    left_out("<b>" * 510_000, "a.html", "nested")
    left_out("<br>" * 1_010_000, "a.html", "1,000,000 tags", "split the page")


def test_html_with_very_many_attributes():
    left_out("<p " + " ".join(f"a{at}" for at in range(30_000)) + ">hello", "a.html", "20,000 attributes")


@pytest.mark.parametrize(
    "markup", ["<a " * 10_000, "<!--" * 50_000, "<![" * 50_000, "<table><a>" * 500 + "x"]
)
def test_html_that_never_ends_takes_no_time(markup):
    """html.parser took the square of its length: 18 s for the first, 86 s for the second."""
    assert len(list(read_bytes(markup.encode(), "a.html"))) == 1


def test_html_with_a_long_attribute_is_read():
    """A picture within the page is one attribute, however long."""
    picture = "data:image/png;base64," + "QUJD+" * 400_000
    assert read_one(f'<p>before<img src="{picture}">after</p>', "a.html").text == "beforeafter"


def test_html_classes():
    markup = f'<p class="{"ab " * 200_000}">hello</p>'
    assert read_one(markup, "a.html").text == "hello"
    assert peak(lambda: read_one(markup, "a.html")) < 15 * MB


@pytest.mark.parametrize("name", ["zlib", "bz2", "base64", "rot13", "idna", "nonsense", "punycode"])
def test_html_that_names_a_codec_which_is_no_encoding(name):
    """Some would unpack the page."""
    markup = f'<meta charset="{name}"><p>some wörds</p>'
    assert isinstance(read_one(zlib.compress(markup.encode()), "a.html"), Document | Problem)
    document = read_one(markup, "a.html")
    assert name == "punycode" or document.text == "some wörds"


# ---- PDF


def pages(*contents: bytes, font: str = "", pdf: hostile.Pdf | None = None, objects: str = "") -> bytes:
    pdf = pdf or hostile.Pdf()
    fonts = f"/Font << /F1 {pdf.font(font)} 0 R >> {objects}"
    streams = [pdf.stream(content) for content in contents]
    return hostile.pdf_of([f"/Contents {one} 0 R /Resources << {fonts} >>" for one in streams], pdf)


def says(words: str) -> bytes:
    return f"BT /F1 12 Tf ({words}) Tj ET ".encode()


def test_pdf_page_tree():
    left_out(hostile.pdf_page_tree(), "a.pdf", "memory")


def test_pdf_pages_are_dropped_when_they_were_read():
    long = says("page") + b" " * 200_000
    assert read_one(pages(long, long), "a.pdf").text == "page\npage"
    assert peak(lambda: read_one(pages(*[long] * 12), "a.pdf")) < 2 * MB


def test_pdf_page_that_is_too_large():
    data = pages(says("first"), says("second") + b" " * 4 * MB, says("third"))
    document = read_one(data, "a.pdf")
    assert (document.text, len(document.pages)) == ("first\nthird", 3)
    assert document.notes == ("parts that take too much memory are left out, on page 2",)


def test_pdf_form_that_is_drawn_again_and_again():
    data = hostile.pdf_form_text(size=10_000, times=50)
    left_out(data, "a.pdf", "100,000 characters", options=ReadOptions(max_characters=100_000))
    assert len(read_one(data, "a.pdf").text) > 400_000


def test_pdf_form_is_not_unpacked_after_the_limit(monkeypatch):
    """A form that is too large for its page, drawn thousands of times: minutes of unpacking."""
    unpacked = []
    whole = pdf_reader._Pages._data
    monkeypatch.setattr(pdf_reader, "_MOST_CONTENT", 20_000)
    monkeypatch.setattr(pdf_reader, "_MOST_WORK", 100_000)
    monkeypatch.setattr(
        pdf_reader._Pages, "_data", lambda self, one: unpacked.append(one) or whole(self, one)
    )
    left_out(hostile.pdf_form_text(size=30_000, times=500), "a.pdf", "from page 1 on")
    assert len(unpacked) < 20


def test_pdf_forms_within_forms(monkeypatch):
    """Each holds its operators until those within it are done."""
    monkeypatch.setattr(pdf_reader, "_MOST_CONTENT", 4000)
    pdf = hostile.Pdf()
    fonts = f"/Font << /F1 {pdf.font()} 0 R >>"
    below = hostile._form(pdf, says("inner"), fonts)
    for level in range(3):
        content = says(f"level {level}") + hostile.filled("q Q ", 1500) + b"/X Do"
        below = hostile._form(pdf, content, f"{fonts} /XObject << /X {below} 0 R >>")
    data = pages(says("page") + b"/X Do", pdf=pdf, objects=f"/XObject << /X {below} 0 R >>")
    document = read_one(data, "a.pdf")
    assert "page" in document.text and "level 2" in document.text and "inner" not in document.text
    assert document.notes == ("parts that take too much memory are left out, on page 1",)


def shared(
    content: bytes, count: int, pdf: hostile.Pdf | None = None, *, font: str = "", more: str = ""
) -> bytes:
    """Pages that all draw one stream."""
    pdf = pdf or hostile.Pdf()
    fonts = f"/Font << /F1 {pdf.font(font)} 0 R >> {more}"
    stream = pdf.stream(content)
    return hostile.pdf_of([f"/Contents {stream} 0 R /Resources << {fonts} >>"] * count, pdf)


def test_pdf_pages_that_share_a_stream(monkeypatch):
    """Each page is small enough; together they would take hours."""
    read = []
    whole = pdf_reader._Pages._page_text
    monkeypatch.setattr(pdf_reader, "_MOST_WORK", 100_000)
    monkeypatch.setattr(
        pdf_reader._Pages, "_page_text", lambda self, page: read.append(page) or whole(self, page)
    )
    document = read_one(shared(says("page") + b" " * 30_000, 500), "a.pdf")
    assert document.text == "page\npage\npage"
    assert document.notes == (
        "what comes after 100,000 bytes of page content is left out, from page 4 on: split the file",
    )
    assert len(read) == 4
    left_out(
        shared(says("page") + b" " * 200_000, 3), "a.pdf", "100,000 bytes of page content", "from page 1 on"
    )


def test_pdf_pages_that_share_a_form(monkeypatch):
    monkeypatch.setattr(pdf_reader, "_MOST_WORK", 100_000)
    pdf = hostile.Pdf()
    form = hostile._form(pdf, says("form") + b" " * 10_000, f"/Font << /F1 {pdf.font()} 0 R >>")
    data = shared(says("page") + b"/X Do " * 6, 5, pdf, more=f"/XObject << /X {form} 0 R >>")
    document = read_one(data, "a.pdf")
    assert document.text.count("page") == 2 and document.text.count("form") == 9
    assert len(document.pages) == 2
    assert "from page 2 on" in document.notes[0]


def test_pdf_pages_that_share_a_font(monkeypatch):
    monkeypatch.setattr(pdf_reader, "_MOST_WORK", 10_000)
    pdf = hostile.Pdf()
    mapping = pdf.stream(b"1 beginbfrange\n<41> <5A> <0041>\nendbfrange\n" + b" " * 8000)
    data = shared(says("page"), 20, pdf, font=f"/ToUnicode {mapping} 0 R")
    assert "from page 2 on" in read_one(data, "a.pdf").notes[0]


def test_pdf_font_that_writes_a_text_for_each_letter():
    pdf = hostile.Pdf()
    mapping = pdf.stream(b"1 beginbfchar\n<41> <" + b"0042" * 120 + b">\nendbfchar\n")
    data = pages(says("A" * 1000), font=f"/ToUnicode {mapping} 0 R", pdf=pdf)
    left_out(data, "a.pdf", "too much memory", "on page 1")


def test_pdf_by_a_filter_without_a_limit():
    """16 kB took 1.4 GB: each ``z`` of ASCII85 stands for four bytes."""
    pdf = hostile.Pdf()
    packed = zlib.compress(b"z" * 15_000_000 + b"~>", 9)
    stream = pdf.stream(packed, "/Filter [/FlateDecode /ASCII85Decode]", packed=False)
    data = hostile.pdf_of([f"/Contents {stream} 0 R /Resources << >>"], pdf)
    assert peak(lambda: left_out(data, "a.pdf", "memory")) < 80 * MB


def test_good_pdf_has_no_notes():
    assert read_one(pdf_of("some words", "and more"), "a.pdf").notes == ()


# ---- DOCX


def test_docx_cell_that_spans_millions_of_columns():
    data = hostile.docx_wide_cell(columns=5 * MB)
    assert read_one(data, "a.docx").text == "| wide |"
    assert peak(lambda: read_one(data, "a.docx")) < 20 * MB


def test_docx_cell_that_spans_rows_is_in_each():
    data = hostile.docx_tall_cell(rows=3, letters=5)
    assert read_one(data, "a.docx").text == "\n".join(["| tall |"] * 4)
    options = ReadOptions(max_characters=100)
    left_out(hostile.docx_tall_cell(rows=100, letters=20), "a.docx", "100 characters", options=options)


@pytest.mark.parametrize("make", [hostile.docx_elements, hostile.docx_attributes])
def test_docx_with_very_many_elements(make):
    left_out(make(1_100_000), "a.docx", "1,000,000 XML elements", "split")


def test_docx_that_unpacks_to_too_much():
    left_out(hostile.docx_of(hostile.paragraph("a"), picture=101 * MB), "a.docx", "101,000", "100,000,000")


@pytest.mark.parametrize("make", [hostile.docx_depth, hostile.docx_entities])
def test_docx_of_other_bombs_is_left_out_or_harmless(make):
    (result,) = read_bytes(make(), "a.docx")
    assert isinstance(result, Problem) or len(result.text) < 1000


# ---- rows and JSON


def documents(lines, source="a.jsonl", **options):
    data = "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines).encode()
    found = list(read_bytes(data, source, ReadOptions(**options)))
    good = [one for one in found if isinstance(one, Document)]
    return good, [one.reason for one in found if isinstance(one, Problem)]


@pytest.mark.parametrize(
    "bad, reason",
    [
        ({"text": "b", "more": "x" * 70_000}, "bytes of metadata"),
        ({"text": "b", "x": [[]] * 600_000}, "1,000,000 JSON values"),
        ({"text": "b", **{f"f{at}": at for at in range(10_001)}}, "10,002 fields"),
        ({"text": "b", "id": "x" * 1001}, "its id has 1,001 characters"),
        ('{"text": ' + "[" * 600 + '"b"' + "]" * 600 + "}", "nested too deep"),
    ],
)
def test_a_row_that_is_too_large_is_left_out_alone(bad, reason):
    good, problems = documents([{"text": "a", "id": "1", "more": "x", "x": 1}, bad, {"text": "c", "id": "3"}])
    assert [one.text for one in good] == ["a", "c"]
    assert len(problems) == 1 and problems[0].startswith("line 2: ") and reason in problems[0]


def test_a_line_that_is_too_long_is_left_out_alone():
    lines = [{"text": "a"}, {"text": "b" * 2000}, {"text": "c"}]
    good, problems = documents(lines, max_characters=1000)
    assert [(one.text, one.metadata["line"]) for one in good] == [("a", 1), ("c", 3)]
    assert problems == ["line 2: the line is too long to be read: split the document"]


def test_rows_have_a_limit(monkeypatch):
    monkeypatch.setattr(tabular, "MAX_ROWS", 60)
    good, problems = documents([{"text": str(at)} for at in range(70)])
    assert len(good) == 60 and problems == ["holds more than 60 rows, and the rest is left out: split it"]


def test_rows_are_read_one_by_one():
    data = b'{"text": "some words"}\n' * 5_000

    def read_all():
        for _ in read_bytes(data, "a.jsonl"):
            pass

    assert peak(read_all) < 2 * MB


def test_a_table_has_a_limit_of_columns():
    head = ",".join(f"c{at}" for at in range(10_001))
    left_out(f"{head}\n1,2\n", "a.csv", "10,001 columns")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_rows_with_windows_line_ends(suffix):
    text = 'text,id\r\n"one\r\ntwo",1\r\n' if suffix == "csv" else '{"text": "one\\r\\ntwo", "id": 1}\r\n'
    (document,) = read_bytes(text.encode("utf-16"), f"a.{suffix}")
    assert (document.text, document.key) == ("one\ntwo", "1")


def test_notebook_of_very_many_values():
    left_out('{"cells": [' + "[]," * 600_000 + "0]}", "a.ipynb", "1,000,000 JSON values")


# ---- folders


def test_a_large_gitignore_is_no_list_of_rules(tmp_path):
    (tmp_path / "a.txt").write_text("some words")
    (tmp_path / ".gitignore").write_text("*.txt\n" * 20_000)
    assert [one.source for one in read_path(tmp_path)] == ["a.txt"]


def test_what_is_left_out_does_not_stop_the_folder(tmp_path):
    (tmp_path / "a.txt").write_text("first")
    (tmp_path / "b.html").write_text("<br>" * 1_010_000)
    (tmp_path / "c.txt").write_text("last")
    found = list(read_path(tmp_path))
    assert [type(one).__name__ for one in found] == ["Document", "Problem", "Document"]


def test_a_title_has_a_limit():
    document = read_one(f"<title>{'word ' * 10_000}</title><p>text</p>", "a.html")
    assert len(document.title) <= 1000
    assert chunk(text_document("a", title="t"))[0].metadata["title"] == "t"
