"""Read documents: file readers, text cleaning and chunking.

::

    for found in walk(["docs"], excludes=["drafts/"]):      # files, or problems
        for document in read_file(found):                   # documents, or problems
            pieces = chunk(document, ChunkingConfig(size=256))
"""

from dartboard.ingest.chunker import ChunkingConfig, chunk
from dartboard.ingest.documents import Block, Document, Piece, Problem
from dartboard.ingest.files import SourceFile, hash_file, walk
from dartboard.ingest.readers import ReadOptions, load_file, read_bytes, read_file, read_path
from dartboard.ingest.sentences import estimate_tokens
from dartboard.ingest.tabular import RowFields
from dartboard.ingest.text import clean

__all__ = [
    "Block",
    "ChunkingConfig",
    "Document",
    "Piece",
    "Problem",
    "ReadOptions",
    "RowFields",
    "SourceFile",
    "chunk",
    "clean",
    "estimate_tokens",
    "hash_file",
    "load_file",
    "read_bytes",
    "read_file",
    "read_path",
    "walk",
]
