"""A text as the terms that dartboard's own analysis finds, spelt so that every Milvus cuts them alike.

Milvus's analyzers differ (Milvus Lite does not stem), and none knows identifiers. So texts are analysed
here, as for the other stores, and Milvus gets a line of words to count: a term of plain letters and digits
as it is, any other as a digest.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from dartboard.lexical.analysis import Analyzer
from dartboard.stores.manifest import Manifest, lexical_settings
from dartboard.stores.milvus.names import digest

ANALYZER_PARAMS = {"tokenizer": "standard"}
_PLAIN = re.compile(r"[a-z0-9]{1,32}")
_NO_TERMS = f"x{digest('')}"  # Milvus wants text: this word stands where there is none


@dataclass(frozen=True, slots=True)
class Lexemes:
    """How a collection's texts and queries become words for Milvus."""

    analyzer: Analyzer
    k1: float = 1.2
    b: float = 0.75

    @classmethod
    def of(cls, manifest: Manifest) -> "Lexemes":
        """As the manifest's ``settings["lexical"]`` wants it."""
        given = lexical_settings(manifest)
        numbers = {name: given.pop(name) for name in ("k1", "b") if name in given}
        return cls(Analyzer(**given), **numbers)

    def of_text(self, text: str) -> str:
        """The words of a passage."""
        return self.of_query(text) or _NO_TERMS

    def of_query(self, text: str) -> str:
        """The words of a query; "" where it has none."""
        return " ".join(map(_spelt, self.analyzer.terms(text)))


@lru_cache(maxsize=100_000)
def _spelt(term: str) -> str:
    return term if _PLAIN.fullmatch(term) else f"x{digest(term)}"
