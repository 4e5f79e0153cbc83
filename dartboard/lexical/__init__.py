"""Lexical search: text to terms, BM25, and an inverted index for sparse vectors."""

from dartboard.lexical.analysis import Analyzer
from dartboard.lexical.bm25 import BM25Index
from dartboard.lexical.inverted import InvertedIndex

__all__ = ["Analyzer", "BM25Index", "InvertedIndex"]
