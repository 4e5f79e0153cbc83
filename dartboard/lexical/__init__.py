"""Words: how text becomes terms, BM25 over them, and an inverted index for sparse vectors."""
