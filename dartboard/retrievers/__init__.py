"""Retrievers (query to candidates): dense, BM25, ColBERT, learned sparse, multi-vector, and fusion."""

from dartboard.retrievers.base import Fields, Retriever
from dartboard.retrievers.bm25 import BM25Retriever
from dartboard.retrievers.candidates import Candidate, Candidates, Ranked, Share
from dartboard.retrievers.colbert import ColbertRetriever
from dartboard.retrievers.dense import DenseRetriever
from dartboard.retrievers.fixed_dimensional import FixedDimensional
from dartboard.retrievers.hybrid import HybridRetriever
from dartboard.retrievers.multi_vector import MultiVectorRetriever, Part
from dartboard.retrievers.registry import retriever_by_name
from dartboard.retrievers.splade import SpladeRetriever

__all__ = [
    "BM25Retriever",
    "Candidate",
    "Candidates",
    "ColbertRetriever",
    "DenseRetriever",
    "Fields",
    "FixedDimensional",
    "HybridRetriever",
    "MultiVectorRetriever",
    "Part",
    "Ranked",
    "Retriever",
    "Share",
    "SpladeRetriever",
    "retriever_by_name",
]
