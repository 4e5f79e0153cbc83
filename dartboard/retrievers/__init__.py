"""Query → candidates: dense, BM25, ColBERT, learned sparse, several vectors, and their fusion."""
