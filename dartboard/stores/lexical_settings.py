"""How a collection's texts become a BM25 index: ``settings["lexical"]`` of its manifest.

{"k1": 1.2, "b": 0.75, "language": "english", "stem": true, "stop_words": true}
"""

from collections.abc import Iterable
from typing import Any

from dartboard.errors import ConfigError
from dartboard.lexical.analysis import Analyzer
from dartboard.lexical.bm25 import BM25Index
from dartboard.stores.records import Manifest

_KNOWN = ("k1", "b", "language", "stem", "stop_words")


def lexical_settings(manifest: Manifest) -> dict[str, Any]:
    """The settings that are given; what is left out takes the defaults."""
    given = dict(manifest.settings.get("lexical", {}))
    if unknown := sorted(set(given) - set(_KNOWN)):
        raise ConfigError(f"unknown lexical setting {unknown[0]!r}: use {', '.join(_KNOWN)}")
    return given


def build_bm25(texts: Iterable[str], manifest: Manifest) -> BM25Index:
    """The index over ``texts`` as the manifest wants it."""
    given = lexical_settings(manifest)
    numbers = {name: given.pop(name) for name in ("k1", "b") if name in given}
    return BM25Index.build(texts, analyzer=Analyzer(**given), **numbers)
