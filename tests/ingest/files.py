"""Small real files of every kind, good and bad."""

import io

import docx
import fpdf
import pypdf

from dartboard.ingest import Document, read_bytes
from dartboard.ingest.chunker import sections_of


def read_one(data, source, options=None):
    if isinstance(data, str):
        data = data.encode()
    results = list(read_bytes(data, source, options))
    assert len(results) == 1
    return results[0]


def titles(document):
    """The sections of a document by their titles."""
    return [" > ".join(section.path) for section in sections_of(document)]


def text_document(text, **more):
    return Document(**{"source": "a.txt", "text": text, "kind": "text", "title": "a", **more})


def pdf_of(*pages, title=None):
    pdf = fpdf.FPDF()
    if title:
        pdf.set_title(title)
    for page in pages:
        pdf.add_page()
        pdf.set_font("Helvetica", size=12)
        pdf.multi_cell(0, 6, page)
    return bytes(pdf.output())


def encrypted_pdf():
    writer = pypdf.PdfWriter()
    writer.append(pypdf.PdfReader(io.BytesIO(pdf_of("secret words"))))
    writer.encrypt("open sesame", algorithm="RC4-128")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def owner_locked_pdf():
    """Anyone may read it; only changing it needs the password."""
    writer = pypdf.PdfWriter()
    writer.append(pypdf.PdfReader(io.BytesIO(pdf_of("public words"))))
    writer.encrypt("", "owner", algorithm="RC4-128")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def docx_of(build):
    document = docx.Document()
    build(document)
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()
