"""Readers of every kind on small real files, and what they say of bad ones."""

import io
import json
import sys
import threading
import zipfile

import fpdf
import pypdf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dartboard.deadline import deadline
from dartboard.errors import ConfigError, DeadlineError, install_command
from dartboard.ingest import (
    ChunkingConfig,
    Document,
    Problem,
    ReadOptions,
    RowFields,
    SourceFile,
    chunk,
    read_bytes,
    read_file,
    read_path,
)
from tests.examples import examples
from tests.ingest.files import docx_of, encrypted_pdf, owner_locked_pdf, pdf_of, read_one, titles


@pytest.mark.parametrize(
    ("data", "source"),
    [
        (pdf_of("one page", "another"), "a.pdf"),
        (docx_of(lambda document: document.add_paragraph("words")), "a.docx"),
        (b"<p>words</p>", "a.html"),
        (b'{"text": "words"}\n{"text": "more"}\n', "a.jsonl"),
        (b"text,id\nwords,1\n", "a.csv"),
    ],
)
def test_reading_ends_when_it_is_cancelled(data, source):
    """Not as a problem of the file, which would be one that is left out."""
    cancelled = threading.Event()
    cancelled.set()
    with deadline(1000, cancelled=cancelled), pytest.raises(DeadlineError):
        list(read_bytes(data, source))


def test_rows_are_no_longer_read_when_it_is_cancelled():
    cancelled = threading.Event()
    with deadline(1000, cancelled=cancelled):
        rows = read_bytes(b'{"text": "words"}\n' * 100, "a.jsonl")
        next(rows)
        cancelled.set()
        with pytest.raises(DeadlineError):
            next(rows)


def test_text():
    document = read_one("one\r\ntwo\u200b\n\n\n\nthree", "notes.txt")
    assert (document.kind, document.title, document.text) == ("text", "notes", "one\ntwo\n\n\n\nthree")
    assert document.notes == ()


@pytest.mark.parametrize(
    "data, text, note",
    [
        ("naïve".encode("utf-8-sig"), "naïve", ""),
        ("naïve".encode("utf-16"), "naïve", ""),
        ("naïve".encode("utf-32"), "naïve", ""),
        ("naïve “quotes”".encode("cp1252"), "naïve “quotes”", "cp1252"),
        (b"na\xefve \x81", "naïve", "latin-1"),
        ("naïve".encode("utf-16") + b"x", "naïve", "damaged at byte"),
    ],
)
def test_encodings(data, text, note):
    document = read_one(data, "a.txt")
    assert document.text.strip() == text
    assert note in "".join(document.notes)
    assert bool(note) == bool(document.notes)


MARKDOWN = """---
title: "The Guide"
tags: [one, two]
authors:
  - Ann
  - Bob
summary: long
  and longer
draft:
---
Preface.

# Install *now*

Run it.

## Linux

```sh
# not a heading
apt install it
```

Mac
---

A [link](http://x).

| a | b |
|---|---|

# Use ##

Last words
---------
- item
---
"""


def test_markdown():
    document = read_one(MARKDOWN, "guide.md")
    assert document.title == "The Guide"
    assert document.metadata == {
        "tags": ["one", "two"],
        "authors": ["Ann", "Bob"],
        "summary": "long and longer",
    }
    assert titles(document) == [
        "",
        "Install now",
        "Install now > Linux",
        "Install now > Mac",
        "Use",
        "Use > Last words",
    ]
    assert document.first_line == 11


def test_markdown_without_headings_or_with_unclosed_fences():
    assert titles(read_one("just words", "a.md")) == [""]
    assert read_one("just words", "a.md").title == "a"
    assert titles(read_one("# A\n````\n```\n# B\n", "a.md")) == ["A"]
    assert titles(read_one("# A\n~~~\n# B\n~~~\n# C", "a.md")) == ["A", "C"]
    assert read_one("---\nno: end\n", "a.md").text == "---\nno: end\n"
    assert titles(read_one("#\n\n###### six\n####### seven", "a.md")) == ["", "six"]


RST = """.. _top:

=============
 The *Guide*
=============

Preface with a :ref:`link <x>`.

:mod:`!abc` --- Abstract ``Classes``
====================================

.. function:: register(cls)

   Inside
   ------
   is no title.

Linux::

   Not a title
   ===========

`Mac <http://x>`_
-----------------
Text at once.
not a title
-----------

- item
======

1. Numbered
===========

=====  =====
a      b
=====  =====

Last :func:`~os.path.join`
--------------------------
"""


@pytest.mark.parametrize("name", ["guide.rst", "guide.txt", "GUIDE"])
def test_rst(name):
    document = read_one(RST, name)
    assert (document.kind, document.title) == ("rst", "The Guide")
    assert titles(document) == [
        "The Guide",
        "The Guide > abc --- Abstract Classes",
        "The Guide > abc --- Abstract Classes > Mac",
        "The Guide > 1. Numbered",
        "The Guide > 1. Numbered > Last join",
    ]
    assert document.first_line == 1 and document.text == RST


def test_rst_levels_are_numbered_in_the_order_of_their_styles():
    text = "One\n~~~\nTwo\n^^^\nwords\n\n~~~~~\nThree\n~~~~~\n\nFour\n~~~~\n\nSix is long\n----\n\nno\n-\n"
    found = titles(read_one(text, "a.rst"))
    assert found == ["One", "One > Two", "One > Two > Three", "Four", "Four > Six is long"]


def test_rst_without_titles_and_text_that_is_no_rst():
    assert titles(read_one("just words", "a.rst")) == [""]
    assert read_one("just words", "a.rst").title == "a"
    for text in ("Name\n----\n\nplain text", ".. note:: but no title", "words ... and .. more\n\n----\n"):
        assert read_one(text, "a.txt").kind == "text"
    assert read_one(RST, "a.txt", ReadOptions(kind="text")).kind == "text"


HTML = """<!doctype html><html><head><title> My
 page </title><style>p {}</style><meta charset="iso-8859-1"></head><body>
<nav><a href="/">Home</a></nav><header>Site</header>
<main><h1>Cats <em>&amp;</em> dogs</h1><p>Some <b>bold</b> text,<br>next line.</p>
<h2>List</h2><ul><li>one<li>two <p>more</p></ul><div hidden>secret</div><!-- comment -->
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre>def f():
    return  1</pre><script>alert(1)</script><h2>caf\xe9</h2><div role="navigation">menu</div></main>
<footer>Imprint</footer></body></html>"""


def test_html():
    document = read_one(HTML.encode("latin-1"), "page.html")
    assert document.title == "My page"
    assert titles(document) == ["Cats & dogs", "Cats & dogs > List", "Cats & dogs > café"]
    assert document.text == (
        "# Cats & dogs\n\nSome bold text,\nnext line.\n\n## List\n\n- one\n- two\n\nmore\n\n"
        "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n```\ndef f():\n    return  1\n```\n\n## café"
    )
    assert document.notes == ()


SPHINX = """<!DOCTYPE html><html lang="en"><head><title>os &#8212; Python documentation</title></head><body>
<div class="related" role="navigation" aria-label="related navigation"><h3>Navigation</h3>
<ul><li class="right"><a href="../genindex.html" title="General Index">index</a></li>
<li><a href="../py-modindex.html">modules</a> |</li></ul></div>
<div class="document"><div class="documentwrapper"><div class="bodywrapper"><div class="body" role="main">
<section id="os"><h1><code class="docutils literal"><span class="pre">os</span></code> — Interfaces<a
class="headerlink" href="#os" title="Link to this heading">¶</a></h1>
<nav class="contents local"><ul><li><a href="#files">Files</a></li></ul></nav>
<div class="contents topic"><p class="topic-title">Contents</p>
<ul><li><a href="#files">Files</a></li></ul></div>
<p>Read it.<a class="reference internal" href="#files">Files</a> See § 3.</p>
<section id="files"><h2>Files<a class="headerlink" href="#files" title="Link">¶</a></h2>
<dl class="py function"><dt class="sig sig-object py" id="os.open"><span class="sig-prename"><span
class="pre">os.</span></span><span class="sig-name"><span class="pre">open</span></span>(<em>path</em>)<a
class="reference internal" href="../_modules/os.html#open"><span class="viewcode-link">[source]</span></a><a
class="headerlink" href="#os.open" title="Link to this definition">¶</a></dt>
<dd><p>Open the file.</p></dd></dl>
<div class="highlight"><pre><span class="linenos">1</span><span class="n">x</span> = 1
</pre></div></section>
<div class="toctree-wrapper compound"><ul><li class="toctree-l1"><a href="io.html">io</a></li></ul></div>
</section></div></div></div>
<div class="sphinxsidebar" role="navigation"><h3>Table of Contents</h3><ul><li>Files</li></ul>
<h4>Previous topic</h4><p>The sidebar</p></div></div>
<div class="footer">&copy; Copyright. Created using Sphinx.</div></body></html>"""


@pytest.mark.parametrize("role", [' role="main"', ""])
def test_sphinx_pages_without_marks_and_navigation(role):
    document = read_one(SPHINX.replace(' role="main"', role).replace(' role="navigation"', ""), "os.html")
    text = document.text.removesuffix("\n\n© Copyright. Created using Sphinx.") if not role else document.text
    assert text == (
        "# os — Interfaces\n\nRead it.Files See § 3.\n\n## Files\n\nos.open(path)\nOpen the file.\n\n"
        "```\nx = 1\n```"
    )
    assert titles(document) == ["os — Interfaces", "os — Interfaces > Files"]


@pytest.mark.parametrize(
    "heading",
    [
        '<h2 id="a">Keys<a class="hash-link" aria-label="Direct link" href="#a">\u200b#</a></h2>',
        '<h2 id="a"><a class="doc-anchor" href="#a">§</a>Keys</h2>',
        '<h2 id="a"><a class="header" href="#a">Keys</a></h2>',
        '<h2><a href="#a"></a>Keys</h2>',
    ],
)
def test_permalinks_of_other_tools(heading):
    document = read_one(f"<body>{heading}<p>¶ and # are <a href='#a'>signs</a>.</p>", "a.html")
    assert document.text == "## Keys\n\n¶ and # are signs."
    assert titles(document) == ["Keys"]


def test_html_without_a_frame_and_nested_beyond_reason():
    assert read_one("<p>only <i>this</i>", "a.htm").text == "only this"
    assert read_one("<h3>Head</h3>words", "a.htm").title == "Head"
    assert read_one("<div>" * 2_000 + "deep", "a.html").text == "deep"
    assert read_one("<div>" * 20_000 + "deep", "a.html").code == "size"
    assert read_one("<article>a</article><article>b</article>", "a.html").text == "a\n\nb"
    assert read_one('<meta charset="utf-16"><p>ü', "a.html").text == "ü"
    assert read_one(b'<meta charset="nonsense"><p>\xc3\xbc', "a.html").text == "ü"


def test_pdf():
    document = read_one(pdf_of("First page.", "", "Third page."), "paper.pdf")
    assert (document.kind, document.title) == ("pdf", "paper")
    assert document.text == "First page.\n\nThird page."
    assert len(document.pages) == 3
    assert read_one(pdf_of("x", title="A title"), "paper.pdf").title == "A title"
    assert read_one(owner_locked_pdf(), "a.pdf").text == "public words"


def blank_pdf():
    writer = pypdf.PdfWriter()
    writer.add_blank_page(200, 200)
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    "data, source, code, reason",
    [
        (b"", "a.txt", "empty", "is empty"),
        (b" \n\t ", "a.md", "empty", "is empty"),
        ("\u200b\ufeff".encode(), "a.txt", "empty", "holds no text"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "a.png", "binary", "NUL bytes"),
        (b"MZ\x00\x01", "a.txt", "binary", "NUL bytes"),
        (b"%PDF-1.7 nothing", "a.pdf", "damaged", "not a readable PDF"),
        (pdf_of("some words")[:-400], "a.pdf", "damaged", "not a readable PDF"),
        (encrypted_pdf(), "a.pdf", "encrypted", "without its password"),
        (blank_pdf(), "a.pdf", "empty", "scanned pages"),
        (b"PK\x03\x04 not really", "a.docx", "damaged", "not a readable DOCX"),
        (b"<script>x</script>", "a.html", "empty", "holds no text"),
        (b"---\ntitle: x\n---\n", "a.md", "empty", "holds no text"),
        (b"{broken", "a.jsonl", "row", "line 1: no JSON"),
        (b"a,b\n", "a.csv", "empty", "holds no rows"),
    ],
)
def test_bad_files(data, source, code, reason):
    problem = read_one(data, source)
    assert isinstance(problem, Problem)
    assert (problem.source, problem.code) == (source, code)
    assert reason in problem.reason


def test_docx():
    def build(document):
        document.core_properties.title = "Report"
        document.add_heading("The report", 0)
        document.add_paragraph("Before all.")
        document.add_heading("Part one", 1)
        document.add_paragraph("Words   of\u00a0part one.")
        table = document.add_table(2, 3)
        for at, cell in enumerate(table.row_cells(0) + table.row_cells(1)):
            cell.text = str(at)
        table.cell(1, 0).merge(table.cell(1, 1))
        document.add_heading("Detail", 2)
        document.add_paragraph("")
        document.add_paragraph("Last.")

    document = read_one(docx_of(build), "report.docx")
    assert document.title == "Report"
    assert titles(document) == ["The report", "The report > Part one", "The report > Part one > Detail"]
    assert document.text == (
        "# The report\n\nBefore all.\n\n# Part one\n\nWords of part one.\n\n| 0 | 1 | 2 |\n| 3 4 | 5 |\n\n"
        "## Detail\n\nLast."
    )


def test_docx_that_unpacks_to_too_much(monkeypatch):
    monkeypatch.setattr("dartboard.ingest.docx._MOST_UNPACKED", 1000)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", "x" * 5000)
    assert "unpacks to 5,000 bytes" in read_one(stream.getvalue(), "a.docx").reason


@pytest.mark.parametrize(
    "module, source, extra",
    [("lxml", "a.html", "lxml"), ("pypdf", "a.pdf", "pypdf"), ("docx", "a.docx", "python-docx")],
)
def test_missing_extras(monkeypatch, module, source, extra):
    monkeypatch.setitem(sys.modules, module, None)
    problem = read_one(b"words", source)
    assert problem.code == "extra"
    assert extra in problem.reason
    assert install_command("docs") in problem.reason


def test_jsonl_guesses_aloud():
    lines = [
        '{"_id": "a", "title": "T", "text": "one", "year": 2020, "big": 123456789012345678901, "none": null}',
        "not json",
        '{"_id": "b", "text": "two", "tags": ["x", {"y": NaN}]}',
        "[1]",
        '{"_id": "a", "text": "three"}',
        '{"_id": "c", "text": ""}',
        "",
        '"plain \\ud800 words"',
    ]
    results = list(read_bytes(("\n".join(lines)).encode(), "rows.jsonl"))
    documents = [r for r in results if isinstance(r, Document)]
    assert [d.text for d in documents] == ["T\n\none", "two", "three", "plain words"]
    assert [d.key for d in documents][:3] == ["a", "b", "a~2"]
    assert len(documents[3].key) == 16
    assert documents[0].notes == ("text taken from 'title' and 'text'", "id taken from '_id'")
    assert documents[1].notes == ()
    assert documents[0].metadata == {"year": 2020, "big": "123456789012345678901", "row": "a", "line": 1}
    assert documents[1].metadata["tags"] == ["x", {"y": "nan"}]
    problems = [r.reason for r in results if isinstance(r, Problem)]
    assert [reason[:7] for reason in problems] == ["line 2:", "line 4:", "line 6:"]
    ids = [piece.id for d in documents for piece in chunk(d)]
    assert ids[0].startswith("rows.jsonl#a#")
    assert len(set(ids)) == 4


def test_named_fields():
    text = "id;note;body;lang\n7;n;hello world;en\n8;m;bye;de\n"
    options = ReadOptions(fields=RowFields(text=("body", "note"), id="lang", metadata=("id",)))
    first, second = read_bytes(text.encode(), "a.csv", options)
    assert (first.text, first.key, first.metadata) == (
        "hello world\n\nn",
        "en",
        {"id": "7", "row": "en", "line": 2},
    )
    assert first.notes == ()
    assert second.title == "de"
    wrong = ReadOptions(fields=RowFields(text=("boddy",)))
    problem = read_one(text, "a.csv", wrong)
    assert "no field 'boddy'; its fields are 'id', 'note', 'body', 'lang'" in problem.reason


def test_csv():
    text = 'title\tsay\nA\t"two\nlines"\nB\t' + "long " * 40_000 + "\n\nC\tx\ty\nD\t\n"
    results = list(read_bytes(text.encode(), "a.tsv"))
    documents = [r for r in results if isinstance(r, Document)]
    assert documents[0].text == "title: A\nsay: two\nlines"
    assert len(documents[0].notes) == 2
    assert len(documents[1].text) > 199_999
    assert [r.reason for r in results if isinstance(r, Problem)] == [
        "line 6: 3 values for 2 columns",
    ]


def test_many_bad_rows_are_counted():
    results = list(read_bytes(("x\n" * 50 + '"good"').encode(), "a.jsonl"))
    assert len(results) == 22
    assert results[-1].reason == "30 more lines cannot be used"


def test_paths_sizes_and_hashes(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.md").write_text("# A\nwords")
    (tmp_path / "big.txt").write_text("x" * 100)
    results = list(read_path(tmp_path, options=ReadOptions(max_bytes=50)))
    assert [r.source for r in results] == ["big.txt", "sub/a.md"]
    assert results[0].code == "size"
    assert "100 bytes, more than max_bytes (50)" in results[0].reason
    assert len(results[1].document_hash) == 32
    (single,) = read_path(tmp_path / "sub" / "a.md")
    assert single.source == "a.md"
    (relative,) = read_path(tmp_path / "sub" / "a.md", root=tmp_path)
    assert relative.source == "sub/a.md"
    (missing,) = read_path(tmp_path / "nothing.txt")
    assert "there is no such file" in missing.reason
    (gone,) = read_file(SourceFile(tmp_path / "gone.txt", "gone.txt"))
    assert "cannot be read" in gone.reason
    with pytest.raises(ConfigError, match="max_bytes"):
        ReadOptions(max_bytes=0)
    assert read_one("# A", "README", ReadOptions(kind="markdown")).title == "A"


SUFFIXES = [
    "txt",
    "md",
    "rst",
    "html",
    "pdf",
    "docx",
    "py",
    "js",
    "c",
    "jsonl",
    "csv",
    "tsv",
    "xyz",
    "java",
    "rs",
    "sql",
]
SEEDS = [
    b"",
    pdf_of("Hello world."),
    encrypted_pdf(),
    docx_of(lambda document: document.add_heading("x", 1)),
    MARKDOWN.encode(),
    RST.encode(),
    HTML.encode(),
    b"class A:\n    @property\n    def f(self):\n        pass\n",
    b'{"text": "a", "id": 3}\n',
    b'a,b\n"x\n",y\n',
    b"\xff\xfea\x00b\x00",
]


@settings(examples(400), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(SUFFIXES), st.sampled_from(SEEDS), st.binary(max_size=80), st.floats(0, 1), st.booleans()
)
def test_no_bytes_crash(suffix, seed, noise, where, overwrite):
    at = int(where * len(seed))
    data = seed[:at] + noise + seed[at + (len(noise) if overwrite else 0) :]
    for result in read_bytes(data, f"some/file.{suffix}"):
        if isinstance(result, Problem):
            assert result.reason
            continue
        assert result.text.strip()
        assert result.title
        at = 0
        for block in result.blocks:
            assert at <= block.start <= block.end <= len(result.text)
            at = block.end
        pieces = chunk(result)
        assert pieces
        "".join(piece.id + piece.text for piece in pieces).encode()


def test_unreadable_file(tmp_path, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "a.txt").write_text("x")
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    (problem,) = read_path(tmp_path)
    assert (problem.code, problem.reason) == ("unreadable", "cannot be read: Permission denied")


@pytest.mark.no_cover  # tracing these would take longer than reading them
@pytest.mark.parametrize(
    "source, text",
    [
        ("a.txt", "." * 300_000 + "x"),
        ("a.txt", "a" * 300_000),
        ("a.md", "# " + " " * 300_000 + "x"),
        ("a.md", "- - " * 50_000 + "x\n---\n"),
        ("a.rst", "=" * 300_000 + "\n" + "::" * 150_000 + "x\n" + ".. _" + ": " * 100_000 + "x"),
        ("a.rst", "*a " * 333 + "\n====\n\n" + "x\n=\n" * 30_000),
        ("a.txt", ".. _a:\n\n" + ".. " * 100_000),
        ("a.py", "x = 1\n" + " " * 300_000 + "\n" + "y" * 9000),
        ("a.js", "function " * 30_000),
        ("a.c", "a " * 100_000 + "("),
        ("a.html", "<a href='#a'>" * 30_000 + "x"),
        ("a.html", "<p>" * 30_000 + "<" * 30_000 + "x"),
        ("a.txt", "\n \n" * 100_000 + "x"),
    ],
)
def test_odd_texts_take_no_time(source, text):
    """No time is asserted: what takes the square of a text's length would never end here."""
    pieces = chunk(read_one(text, source))
    assert "".join("".join(piece.text.split()) for piece in pieces)


def test_modules_beyond_reason_are_not_parsed(monkeypatch):
    monkeypatch.setattr("dartboard.ingest.code._LONGEST_PARSED", 10)
    assert titles(read_one("async def go():\n    pass\n", "a.py")) == ["go"]


def test_notebooks_and_pictures():
    cells = [
        {"cell_type": "markdown", "source": ["# Brewing\n", "How to brew."]},
        {"cell_type": "code", "source": "brew(leaves)", "outputs": [{"text": "never shown"}]},
        {"cell_type": "code", "source": []},
    ]
    notebook = json.dumps({"cells": cells, "metadata": {"kernelspec": {"language": "python"}}, "nbformat": 4})
    (document,) = read_bytes(notebook.encode(), "a/brew.ipynb")
    assert document.title == "Brewing" and "```python\nbrew(leaves)\n```" in document.text
    assert "never shown" not in document.text
    for broken in ("{}", "[1]", '{"cells": [1]}', "not json"):
        (problem,) = read_bytes(broken.encode(), "b.ipynb")
        assert "not a notebook" in problem.reason and problem.code == "damaged"
    (picture,) = read_bytes(b"<svg><text>x</text></svg>", "p.svg")
    assert picture.reason == "is a picture" and picture.code == "binary"


@pytest.mark.parametrize(
    "owner", ["!!python/object/apply:os.system ['true']", "!!binary ['x']", "&a [*a, *a]", "!evil x", "a: b"]
)
def test_front_matter_that_is_more_than_plain_values_is_left_out(owner, monkeypatch):
    monkeypatch.setattr("os.system", lambda *_: pytest.fail("a document ran a command"))
    document = read_one(f"---\ntitle: Rules\nowner: {owner}\n---\n\n# Leave\n\nTwo days.\n", "a.md")
    assert document.metadata == {} and document.title == "Leave" and document.first_line == 5
    assert len(document.notes) == 1


@pytest.mark.parametrize(
    "front",
    [
        "---\ntitle: T\nweight: 10\ndraft: true\ntags: [a, b]\nday: 2024-05-01\n---\n",
        '+++\ntitle = "T"\nweight = 10\ndraft = true\ntags = ["a", "b"]\nday = 2024-05-01\n+++\n',
    ],
)
def test_front_matter_keeps_its_types(front):
    document = read_one(f"{front}Words.\n", "a.md")
    assert (document.title, document.text, document.first_line) == ("T", "Words.\n", 8)
    assert document.metadata == {"weight": 10, "draft": True, "tags": ["a", "b"], "day": "2024-05-01"}
    assert read_one("---\njust a line\n---\n", "a.md").text == "---\njust a line\n---\n"


def test_headings_in_comments_and_titles_of_two_lines():
    text = "<!--\n# Draft\n-->\nThe first line\nof the title\n======\n\nWords.\n"
    document = read_one(text, "a.md")
    assert titles(document) == ["The first line of the title"]
    assert document.title == "The first line of the title"


def test_a_readme_without_a_title_is_not_named_after_its_first_section():
    text = "[![Logo](logo.png)](/)\n\nFast.\n\n## Table of contents\n\n- x\n\n## Install\n\nRun it.\n"
    assert read_one(text, "express/Readme.md").title == "Readme"
    assert read_one("## Only\n\nWords.\n", "a.md").title == "Only"


def test_fields_of_a_file_are_no_chunk():
    pieces = chunk(read_one(":orphan:\n\n.. _a:\n\nGuide\n=====\n\nWords.\n", "a.rst"))
    assert [piece.metadata["section"] for piece in pieces] == ["Guide"]


def test_release_notes_are_rst_by_two_titles():
    text = "==========\nNotes 0.95\n==========\n\nWelcome.\n\nWhat's new\n==========\n\nAll.\n"
    document = read_one(text, "0.95.txt")
    assert (document.kind, document.title) == ("rst", "Notes 0.95")
    assert titles(document) == ["Notes 0.95", "Notes 0.95 > What's new"]


def test_html_keeps_code_cells_forms_exponents_and_pictures():
    markup = """<form><h1>A</h1><p>x<sup>2</sup> H<sub>2</sub>O 1<sup>st</sup> <img alt="a cat" src="c">.</p>
    <div class="highlight-python notranslate"><div class="highlight"><pre>&gt;&gt;&gt; f()
[...] x
</pre></div></div>
    <table><tr><th></th><th>b|c</th></tr><tr><td></td><td>2</td></tr></table></form>
    <table><tr><td><h2>Layout</h2><p>cell</p></td></tr></table><ul><li><p>one</p></li><li>two</li></ul>"""
    document = read_one(markup, "a.html")
    assert document.text == (
        "# A\n\nx^2 H_2O 1st a cat .\n\n```python\n>>> f()\n[...] x\n```\n\n"
        "| | b\\|c |\n| --- | --- |\n| | 2 |\n\n## Layout\n\ncell\n\n- one\n- two"
    ).replace("| | ", "|  | ")
    assert [block.kind for block in document.blocks] == ["heading", "code", "table", "heading"]


def test_rows_without_a_text_field_are_all_their_fields():
    def texts(data, source):
        return [document.text for document in read_bytes(data.encode(), source)]

    assert texts("id,question,answer\n1,Why?,So.\n", "a.csv") == ["Why?\n\nSo."]
    assert texts("name,city,age\nAnn,Bonn,7\nBob,,8\n", "a.csv") == [
        "name: Ann\ncity: Bonn\nage: 7",
        "name: Bob\nage: 8",
    ]
    array = '[{"id": "x", "text": "one"}, 3, {"id": "y", "text": "two", "n": 1}]'
    first, problem, second = read_bytes(array.encode(), "a.json")
    assert (first.text, first.key, first.kind) == ("one", "x", "rows")
    assert (problem.code, second.metadata["n"]) == ("row", 1)
    assert read_one('{"a": [1]}', "b.json").kind == "text"


@pytest.mark.parametrize(("text", "name"), [("Съешь ещё этих", "cp1251"), ("日本語の文章です", "shift_jis")])
def test_a_named_encoding(text, name):
    data = text.encode(name)
    assert read_one(data, "a.txt", ReadOptions(encoding=name)).text == text
    assert (
        read_one(text.encode("utf-8-sig"), "a.txt", ReadOptions(encoding=name)).text == text
    )  # its mark wins
    (row,) = read_bytes(f'{{"text": "{text}"}}'.encode(name), "a.jsonl", ReadOptions(encoding=name))
    assert row.text == text
    assert read_one("naïve".encode(), "a.txt", ReadOptions(encoding="ascii")).notes


@pytest.mark.parametrize("name", ["nonsense", "zlib", "rot13"])
def test_a_named_encoding_that_is_none(name):
    with pytest.raises(ConfigError) as caught:
        ReadOptions(encoding=name)
    assert caught.value.field == "encoding"


def test_a_notebook_has_no_lines():
    notebook = json.dumps({"cells": [{"cell_type": "markdown", "source": "# A\n\nWords."}], "nbformat": 4})
    (piece,) = chunk(read_one(notebook, "a.ipynb"))
    assert "start_line" not in piece.metadata and piece.metadata["section"] == "A"


def manual():
    """Six pages with a running header, page numbers, an outline and a table of contents."""
    pdf = fpdf.FPDF()
    pdf.set_font("Helvetica", size=12)
    for page in range(1, 7):
        pdf.add_page()
        if page in (2, 4):
            pdf.start_section(f"Chapter {page}")
        body = "Opening . . . . . . . 2\nClosing ........ 4\n" if page == 1 else f"Chapter {page}\n"
        words = "\n".join(f"Line {page}{line} says what" for line in "abc")
        pdf.multi_cell(0, 6, f"The manual\n{body}{words}\nand goes on\n{page}")
    return bytes(pdf.output())


def test_pdf_with_an_outline():
    document = read_one(manual(), "a.pdf")
    assert titles(document) == ["", "Chapter 2", "Chapter 4"]
    for unwanted in ("The manual", ". . .", "....", "\n3"):
        assert unwanted not in document.text
    pieces = chunk(document, ChunkingConfig(size=40, smallest=0))
    assert {piece.metadata["section"] for piece in pieces} >= {"Chapter 2", "Chapter 4"}
    assert all(piece.metadata["page"] >= 4 for piece in pieces if piece.metadata["section"] == "Chapter 4")
