"""Files and requests that are small on the wire and large in memory.

``FILES`` are functions that make the bytes of a file, by its name; ``REQUESTS`` are functions that make the
parts of a body, by what they are sent to.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

LARGEST = 49_000_000
"""Bytes of a file, just below what the readers take."""

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="png" ContentType="image/png"/>'
    '<Override PartName="/word/document.xml" ContentType='
    '"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
)
_RELATION = '<Relationship Id="rId1" Type="{}" Target="{}"/>'


def filled(part: str | bytes, size: int = LARGEST) -> bytes:
    """A part again and again."""
    block = part.encode() if isinstance(part, str) else part
    return block * (size // len(block))


# ---- PDF


class Pdf:
    """A PDF written object by object; numbers are given out in order."""

    def __init__(self) -> None:
        self.objects: list[bytes] = []

    def add(self, body: str | bytes) -> int:
        """A dictionary or the like."""
        self.objects.append(body.encode("latin-1") if isinstance(body, str) else body)
        return len(self.objects)

    def stream(self, data: bytes, entries: str = "", *, packed: bool = True) -> int:
        """A stream, deflated."""
        kept = zlib.compress(data, 9) if packed else data
        filter_ = " /Filter /FlateDecode" if packed else ""
        head = f"<< /Length {len(kept)}{filter_} {entries} >>\nstream\n".encode()
        return self.add(head + kept + b"\nendstream")

    def font(self, entries: str = "") -> int:
        """Helvetica."""
        return self.add(f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica {entries} >>")

    def bytes(self, root: int) -> bytes:
        """The file."""
        out = io.BytesIO(b"%PDF-1.7\n")
        out.seek(0, io.SEEK_END)
        starts = []
        for number, body in enumerate(self.objects, start=1):
            starts.append(out.tell())
            out.write(b"%d 0 obj\n%b\nendobj\n" % (number, body))
        at = out.tell()
        out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(starts) + 1))
        for start in starts:
            out.write(b"%010d 00000 n \n" % start)
        out.write(
            b"trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF" % (len(starts) + 1, root, at)
        )
        return out.getvalue()


def pdf_of(pages: Iterable[str], pdf: Pdf) -> bytes:
    """A file of these page dictionaries' entries."""
    kids = [pdf.add(f"<< /Type /Page /MediaBox [0 0 600 800] {entries} >>") for entries in pages]
    listed = " ".join(f"{kid} 0 R" for kid in kids)
    tree = pdf.add(f"<< /Type /Pages /Kids [{listed}] /Count {len(kids)} >>")
    return pdf.bytes(pdf.add(f"<< /Type /Catalog /Pages {tree} 0 R >>"))


def pdf_page_tree(levels: int = 30) -> bytes:
    """Each node of the page tree has the next one twice: 2^levels pages."""
    pdf = Pdf()
    text = pdf.stream(b"BT /F1 12 Tf (hello) Tj ET")
    below = pdf.add(
        f"<< /Type /Page /MediaBox [0 0 9 9] /Contents {text} 0 R "
        f"/Resources << /Font << /F1 {pdf.font()} 0 R >> >> >>"
    )
    for level in range(levels):
        count = 2 ** (level + 1)
        below = pdf.add(f"<< /Type /Pages /Kids [{below} 0 R {below} 0 R] /Count {count} >>")
    return pdf.bytes(pdf.add(f"<< /Type /Catalog /Pages {below} 0 R >>"))


def _form(pdf: Pdf, content: bytes, resources: str) -> int:
    entries = f"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << {resources} >>"
    return pdf.stream(content, entries)


def pdf_form_tree(levels: int = 30, letters: int = 1000) -> bytes:
    """Each form draws the next one twice; the last one has text."""
    pdf = Pdf()
    font = pdf.font()
    fonts = f"/Font << /F1 {font} 0 R >>"
    below = _form(pdf, b"BT /F1 12 Tf (%b) Tj ET" % (b"bomb " * (letters // 5)), fonts)
    for _ in range(levels):
        content = b"/X Do /X Do BT /F1 1 Tf () Tj ET"
        below = _form(pdf, content, f"{fonts} /XObject << /X {below} 0 R >>")
    page = pdf.stream(b"/X Do")
    return pdf_of([f"/Contents {page} 0 R /Resources << {fonts} /XObject << /X {below} 0 R >> >>"], pdf)


def pdf_form_depth(levels: int = 60, size: int = 4_000_000) -> bytes:
    """Forms within forms, each with a long list of operators that is held until the inner ones are done."""
    pdf = Pdf()
    fonts = f"/Font << /F1 {pdf.font()} 0 R >>"
    below = _form(pdf, b"BT /F1 12 Tf (end) Tj ET", fonts)
    for _ in range(levels):
        below = _form(
            pdf,
            b"BT /F1 1 Tf () Tj ET " + filled("q Q ", size) + b"/X Do",
            f"{fonts} /XObject << /X {below} 0 R >>",
        )
    page = pdf.stream(b"BT /F1 1 Tf () Tj ET /X Do")
    return pdf_of([f"/Contents {page} 0 R /Resources << {fonts} /XObject << /X {below} 0 R >> >>"], pdf)


def pdf_form_text(size: int = 4_000_000, times: int = 4000) -> bytes:
    """A page that draws the same form with a long text thousands of times."""
    pdf = Pdf()
    fonts = f"/Font << /F1 {pdf.font()} 0 R >>"
    form = _form(pdf, b"BT /F1 12 Tf (" + filled("bomb ", size) + b") Tj ET", fonts)
    page = pdf.stream(b"BT /F1 1 Tf () Tj ET " + b"/X Do " * times)
    return pdf_of([f"/Contents {page} 0 R /Resources << {fonts} /XObject << /X {form} 0 R >> >>"], pdf)


def pdf_operators(size: int = 60_000_000) -> bytes:
    """A page of a great many operators."""
    pdf = Pdf()
    fonts = f"/Font << /F1 {pdf.font()} 0 R >>"
    page = pdf.stream(b"BT /F1 1 Tf () Tj ET " + filled("q Q ", size))
    return pdf_of([f"/Contents {page} 0 R /Resources << {fonts} >>"], pdf)


def pdf_pages(count: int = 200, size: int = 15_000_000) -> bytes:
    """Pages whose contents are a few kB each, and inflate to many MB."""
    pdf = Pdf()
    fonts = f"/Font << /F1 {pdf.font()} 0 R >>"
    content = zlib.compress(b"BT /F1 12 Tf (page) Tj ET %" + b" " * size, 9)
    head = f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode()
    streams = [pdf.add(head + content + b"\nendstream") for _ in range(count)]
    return pdf_of([f"/Contents {stream} 0 R /Resources << {fonts} >>" for stream in streams], pdf)


def pdf_contents_array(size: int = 10_000_000, times: int = 5000) -> bytes:
    """A page whose contents are the same stream thousands of times."""
    pdf = Pdf()
    fonts = f"/Font << /F1 {pdf.font()} 0 R >>"
    stream = pdf.stream(b"BT /F1 12 Tf (" + filled("bomb ", size) + b") Tj ET")
    listed = f"{stream} 0 R " * times
    return pdf_of([f"/Contents [{listed}] /Resources << {fonts} >>"], pdf)


def pdf_ligatures(letters: int = 4000, size: int = 1_000_000) -> bytes:
    """A font that writes thousands of letters for each one of the text."""
    pdf = Pdf()
    long = "0041" * letters
    cmap = pdf.stream(f"1 beginbfchar\n<41> <{long}>\nendbfchar\n".encode())
    fonts = f"/Font << /F1 {pdf.font(f'/ToUnicode {cmap} 0 R')} 0 R >>"
    page = pdf.stream(b"BT /F1 12 Tf (" + b"A" * size + b") Tj ET")
    return pdf_of([f"/Contents {page} 0 R /Resources << {fonts} >>"], pdf)


# ---- DOCX


def docx_of(body: str | bytes | Iterable[bytes], *, picture: int = 0, head: str = "") -> bytes:
    """A DOCX with this within its ``<w:body>``, and a picture of so many zeros."""
    parts = [body.encode()] if isinstance(body, str) else [body] if isinstance(body, bytes) else body
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", _TYPES)
        archive.writestr(
            "_rels/.rels",
            _RELATIONS.format(_RELATION.format(f"{_OFFICE}/officeDocument", "word/document.xml")),
        )
        if picture:
            archive.writestr(
                "word/_rels/document.xml.rels",
                _RELATIONS.format(_RELATION.format(f"{_OFFICE}/image", "media/image1.png")),
            )
            with archive.open("word/media/image1.png", "w", force_zip64=True) as stream:
                for _ in range(picture // 1_000_000):
                    stream.write(bytes(1_000_000))
        with archive.open("word/document.xml", "w", force_zip64=True) as stream:
            stream.write(f'{head}<w:document xmlns:w="{WORD}"><w:body>'.encode())
            for part in parts:
                stream.write(part)
            stream.write(b"</w:body></w:document>")
    return out.getvalue()


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def docx_wide_cell(columns: int = 100_000_000) -> bytes:
    """A cell that spans a hundred million columns."""
    cell = f'<w:tc><w:tcPr><w:gridSpan w:val="{columns}"/></w:tcPr>{paragraph("wide")}</w:tc>'
    return docx_of(f"<w:tbl><w:tr>{cell}</w:tr></w:tbl>")


def docx_tall_cell(rows: int = 20_000, letters: int = 100_000) -> bytes:
    """A long text in a cell that spans thousands of rows, each of which shows it."""
    text = paragraph("tall " * (letters // 5))
    first = f'<w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>{text}</w:tc></w:tr>'
    rest = f"<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr>{paragraph('')}</w:tc></w:tr>"
    return docx_of(f"<w:tbl>{first}{rest * rows}</w:tbl>")


def docx_depth(levels: int = 1_000_000) -> bytes:
    """Elements within elements."""
    return docx_of("<w:sdt>" * levels + "</w:sdt>" * levels)


def docx_elements(count: int = 10_000_000) -> bytes:
    """A great many empty paragraphs."""
    block = b"<w:p/>" * 100_000
    return docx_of(block for _ in range(count // 100_000))


def docx_attributes(count: int = 5_000_000) -> bytes:
    """One element with a great many attributes."""
    parts = (
        "".join(f' a{first + at}="1"' for at in range(100_000)).encode() for first in range(0, count, 100_000)
    )
    return docx_of([b"<w:p", *parts, b"/>"])


def docx_picture() -> bytes:
    """A picture of 400 MB of zeros."""
    return docx_of(paragraph("a picture"), picture=400_000_000)


def docx_entities() -> bytes:
    """Entities of entities."""
    names = "abcdefghij"
    lines = [f'<!ENTITY a "{"ha" * 50}">']
    lines += [f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in pairwise(names)]
    return docx_of(paragraph("&j;"), head=f"<!DOCTYPE x [{''.join(lines)}]>")


# ---- HTML, text, rows


def html_attributes(count: int = 5_000_000) -> bytes:
    """One tag with a great many attributes."""
    return ("<p " + " ".join(f"a{at}" for at in range(count)) + ">hello").encode()[:LARGEST]


def html_classes() -> bytes:
    """A tag with millions of classes."""
    return b'<p class="' + filled("ab ", 20_000_000) + b'">hello</p>'


def markdown_headings() -> bytes:
    """Millions of headings."""
    return filled("# a\n", 19_000_000)


def csv_columns(count: int = 1_000_000, rows: int = 20) -> bytes:
    """A table of a million columns."""
    head = "text," + ",".join(f"c{at}" for at in range(count))
    row = "hello," + "1," * (count - 1) + "1"
    return "\n".join([head, *[row] * rows]).encode()[:LARGEST]


def jsonl_keys(rows: int = 60_000) -> bytes:
    """Rows of which each has other fields."""
    lines = (json.dumps({"text": "a"} | {f"f{row}_{at}": 1 for at in range(50)}) for row in range(rows))
    return "\n".join(lines).encode()[:LARGEST]


FILES: dict[str, Callable[[], bytes]] = {
    "text-dots.txt": lambda: filled(". ", 19_000_000),
    "text-lines.txt": lambda: filled("a\n", 19_000_000),
    "text-empty-lines.txt": lambda: b"a" + filled("\n", 19_000_000) + b"b",
    "text-word.txt": lambda: filled("a", 19_000_000),
    "text-pictures.txt": lambda: "\U0001f4a9\u0301 ".encode() + filled("a\u0301 ", 49_000_000),
    "text-longest.txt": lambda: "\U0001f4a9 ".encode() + filled("a\u0301\n", 26_000_000),
    "text-large.txt": lambda: filled("some words and a dot. "),
    "markdown-headings.md": markdown_headings,
    "markdown-fences.md": lambda: filled("```\n~~~\n", 19_000_000),
    "markdown-front.md": lambda: b"---\n" + filled("a: [" + "x," * 1000 + "]\n", 19_000_000) + b"---\ntext",
    "markdown-list.md": lambda: b"---\na:\n" + filled("- x\n", 400_000) + b"---\ntext",
    "rst-headings.rst": lambda: filled("a\n=\n\n", 19_000_000),
    "html-unclosed.html": lambda: filled("<b>", 6_000_000) + b"hello",
    "html-unclosed-blocks.html": lambda: filled("<div>a", 6_000_000),
    "html-most-tags.html": lambda: filled("<b>a", 990_000),
    "html-most-attributes.html": lambda: b"<p " + b" ".join(b"a%d" % at for at in range(490_000)) + b">hello",
    "html-large.html": lambda: filled("<p>a</p>"),
    "html-comments.html": lambda: b"hello" + filled("<!---->", 19_000_000),
    "html-entities.html": lambda: filled("&amp;", 19_000_000),
    "html-attributes.html": html_attributes,
    "html-classes.html": html_classes,
    "pdf-page-tree.pdf": pdf_page_tree,
    "pdf-form-tree.pdf": pdf_form_tree,
    "pdf-form-depth.pdf": pdf_form_depth,
    "pdf-form-text.pdf": pdf_form_text,
    "pdf-operators.pdf": pdf_operators,
    "pdf-most-operators.pdf": lambda: pdf_operators(1_990_000),
    "pdf-pages.pdf": pdf_pages,
    "pdf-contents-array.pdf": pdf_contents_array,
    "pdf-ligatures.pdf": pdf_ligatures,
    "docx-wide-cell.docx": docx_wide_cell,
    "docx-tall-cell.docx": docx_tall_cell,
    "docx-depth.docx": docx_depth,
    "docx-elements.docx": docx_elements,
    "docx-most-elements.docx": lambda: docx_elements(900_000),
    "docx-most-attributes.docx": lambda: docx_attributes(900_000),
    "docx-attributes.docx": docx_attributes,
    "docx-picture.docx": docx_picture,
    "docx-entities.docx": docx_entities,
    "jsonl-short-rows.jsonl": lambda: filled('"a"\n'),
    "jsonl-most-rows.jsonl": lambda: b"".join(b'"row %d"\n' % at for at in range(999_000)),
    "jsonl-longest-row.jsonl": lambda: '{"text": "\U0001f4a9 '.encode() + filled("ab. ", 19_900_000) + b'"}',
    "jsonl-one-row.jsonl": lambda: b'{"text": "' + filled("a. ", 45_000_000) + b'"}',
    "jsonl-lists.jsonl": lambda: b'{"text": "a", "x": [' + filled("[],") + b"0]}",
    "jsonl-most-lists.jsonl": lambda: b'{"text": "a", "x": [' + filled("[],", 1_490_000) + b"0]}",
    "jsonl-depth.jsonl": lambda: b"[" * LARGEST,
    "jsonl-keys.jsonl": jsonl_keys,
    "jsonl-metadata.jsonl": lambda: (
        b'{"text": "' + filled("a. ", 4_000_000) + b'", "more": "' + filled("x", 4_000_000) + b'"}\n'
    ),
    "csv-one-line.csv": lambda: b'text\n"' + filled("a. ", 45_000_000) + b'"',
    "csv-columns.csv": csv_columns,
    "csv-short-rows.csv": lambda: b"text\n" + filled("a\n"),
    "notebook-lists.ipynb": lambda: b'{"cells": [' + filled("[],") + b"0]}",
    "python-parsed.py": lambda: filled("a=b\n", 4_900_000),
    "python-nested.py": lambda: filled("(", 4_000_000),
    "code-lines.js": lambda: filled("function a(){}\n", 19_000_000),
    ".gitignore": lambda: filled("*.a\n", 40_000_000),
}


class Call(NamedTuple):
    """A request: the body is made in parts as it is sent."""

    path: str
    body: Callable[[], Iterator[bytes]]
    kind: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


def _json(value: object) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([json.dumps(value).encode()])


def _around(head: bytes, part: bytes, tail: bytes, size: int = 8_000_000) -> Callable[[], Iterator[bytes]]:
    return lambda: iter([head, part * ((size - len(head) - len(tail)) // len(part)), tail])


def _lines(line: Callable[[int], bytes], count: int) -> Callable[[], Iterator[bytes]]:
    return lambda: (line(at) for at in range(count))


_BASE = "/api/dartboard"
_DOCUMENTS = f"{_BASE}/collections/mine/documents"
_NDJSON = "application/x-ndjson"


def _row(count: int, value: str = "0.5") -> str:
    return "[" + ",".join([value] * count) + "]"


def _select_rows(rows: int, columns: int, *, value: str = "1") -> Callable[[], Iterator[bytes]]:
    """Vectors of one number again and again, the query among them."""

    def parts() -> Iterator[bytes]:
        yield b'{"query": ' + _row(columns, value).encode() + b', "embeddings": ['
        row = _row(columns, value).encode()
        yield b",".join([row] * rows)
        yield b"]}"

    return parts


def _select_pairs(rows: int) -> Callable[[], Iterator[bytes]]:
    def parts() -> Iterator[bytes]:
        yield b'{"query_distances": ' + _row(rows, "1").encode() + b', "pairwise_distances": ['
        yield b",".join([_row(rows, "1").encode()] * rows)
        yield b"]}"

    return parts


def _select_texts(count: int, letters: int) -> Callable[[], Iterator[bytes]]:
    value = {
        "query": [1.0, 0.5],
        "embeddings": [[1.0, at / count] for at in range(count)],
        "texts": ["word " * (letters // 5)] * count,
    }
    return _json(value)


def _line(text: str, at: int, **metadata: str) -> bytes:
    return json.dumps({"id": f"d{at}", "text": text, "metadata": metadata}).encode() + b"\n"


def _dots(at: int) -> bytes:
    return b'{"id": "d%d", "text": "%b"}\n' % (at, b". " * 2_000_000)


REQUESTS: dict[str, Call] = {
    "select: a million numbers": Call(f"{_BASE}/select", _select_rows(2000, 1990)),
    "select: one candidate of 2 million numbers": Call(f"{_BASE}/select", _select_rows(1, 1_990_000)),
    "select: all pairs of 1,990": Call(f"{_BASE}/select", _select_pairs(1990)),
    "select: empty rows": Call(f"{_BASE}/select", _around(b'{"embeddings": [', b"[],", b"[]]}")),
    "select: objects": Call(f"{_BASE}/select", _around(b'{"query": [1], "embeddings": [', b"{},", b"{}]}")),
    "select: 2,000 texts of 3,900 letters": Call(f"{_BASE}/select", _select_texts(2000, 3900)),
    "select: two texts of 3.9 MB": Call(f"{_BASE}/select", _select_texts(2, 3_900_000)),
    "select: sources and exclusions": Call(
        f"{_BASE}/select", _around(b'{"query": [1], "embeddings": [[1]], "exclude": [', b"1,", b"1]}")
    ),
    "batch: 4 million queries": Call(f"{_BASE}/retrieve/batch", _around(b'{"queries": [', b'"",', b'""]}')),
    "retrieve: a query of 8 MB": Call(f"{_BASE}/retrieve", _around(b'{"query": "', b"a ", b'"}')),
    "retrieve: a filter of 8 MB": Call(
        f"{_BASE}/retrieve", _around(b'{"query": "a", "filter": "', b"a=1 or ", b'a=1"}')
    ),
    "retrieve: 8 MB of ids": Call(
        f"{_BASE}/retrieve", _around(b'{"query": "a", "corpus_ids": [', b'"a",', b'"a"]}')
    ),
    "explore: 300 candidates": Call(
        f"{_BASE}/explore", _json({"query": "many words", "collection": "mine", "triage_k": 300, "k": 100})
    ),
    "rerank: 4 million documents": Call(
        "/v1/rerank", _around(b'{"query": "a", "documents": [', b'"",', b'""]}')
    ),
    "rerank: 500 documents of 15 kB": Call(
        "/v1/rerank", _json({"query": "word", "documents": ["word " * 3000] * 500})
    ),
    "rerank: one document of 7.9 MB": Call(
        "/v1/rerank", _around(b'{"query": "a", "documents": ["', b"a ", b'"]}')
    ),
    "upsert: lines of 4 MB of dots": Call(_DOCUMENTS, _lines(_dots, 3), _NDJSON),
    "upsert: one line of 250 MB": Call(_DOCUMENTS, _lines(lambda at: b"a" * 1_000_000, 250), _NDJSON),
    "upsert: 100,000 bad lines": Call(_DOCUMENTS, _lines(lambda at: b"{}\n", 100_000), _NDJSON),
    "upsert: 100 million empty lines": Call(_DOCUMENTS, _lines(lambda at: b"\n" * 1_000_000, 100), _NDJSON),
    "upsert: lines of empty lists": Call(
        _DOCUMENTS,
        _lines(lambda at: b'{"text": "a", "metadata": {"x": [' + b"[]," * 1_390_000 + b"0]}}\n", 5),
        _NDJSON,
    ),
    "upsert: metadata of 2 MB on each of many passages": Call(
        _DOCUMENTS,
        _lines(lambda at: _line("many words. " * 20_000, at, more="x" * 2_000_000), 2),
        _NDJSON,
    ),
    "upsert: metadata of 60 kB on each of many passages": Call(
        _DOCUMENTS,
        _lines(lambda at: _line("many words. " * 20_000, at, more="x" * 60_000), 1),
        _NDJSON,
    ),
    "upsert: gzip bomb": Call(
        _DOCUMENTS,
        lambda: iter([zlib.compress(b'{"text": "a"}\n' * 10_000_000, 9)]),
        _NDJSON,
        (("content-encoding", "gzip"),),
    ),
    "document: all passages": Call(f"GET {_DOCUMENTS}/d0", lambda: iter([])),
    "batch: 100 queries, 100 passages with 60 kB of metadata each": Call(
        f"{_BASE}/retrieve/batch",
        _json(
            {
                "queries": [f"many words {at}" for at in range(100)],
                "top_k": 100,
                "triage_k": 100,
                "explain": True,
                "collection": "mine",
            }
        ),
    ),
}
