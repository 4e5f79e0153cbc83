"""Records, filters and queries for the contract tests of stores; all from seeds."""

import numpy as np

from dartboard.stores import Manifest, Record, SparseVector, VectorField
from dartboard.types import FloatArray

DIMENSION = 24
MANIFEST = Manifest(
    model="sample-model",
    model_name="sample",
    dimension=DIMENSION,
    vectors={"code": VectorField(dimension=8), "pooled": VectorField(dimension=12, metric="dot")},
    sparse=("splade",),
    settings={"chunking": {"size": 256}},
)
PLAIN = Manifest(model="sample-model", model_name="sample", dimension=DIMENSION)
_TOPICS = """broker queue message consumer offset partition leader replica commit token session refresh cache
index vector query filter schema table column backup restore snapshot cluster node shard metric alert"""
WORDS = tuple(_TOPICS.split())
LANGUAGES = ("en", "de", "fr", "日本")
FILTERS = (
    "",
    "year >= 2015",
    "year < 2005 or lang = 'de'",
    "lang in ['en', '日本'] and not draft = true",
    "tags = 'red' and year > 2003.5",
    "not rating exists",
    "rating >= 2.5 and rating < 4",
    "`odd \"name.with\\signs'` = 'x'",
    "not (lang = 'en' or tags in ['blue', 7])",
    "draft = false and lang > 'e'",
    "year in [2001, 2002.0, '2003']",
    "lang = 'none of them'",
)


def sample_records(count: int, *, seed: int = 0, fields: bool = True) -> list[Record]:
    """Records around a few centres, with metadata of every type; two in three have further fields."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((12, DIMENSION))
    return [_record(number, centres, chance, fields) for number in range(count)]


def own_word(number: int) -> str:
    """A word that occurs in one record only and that no stemmer changes."""
    return "zq" + "".join("bcdfghjklm"[int(digit)] for digit in str(number))


def sample_queries(count: int, *, seed: int = 1) -> FloatArray:
    """Query vectors, ``(count, DIMENSION)`` float32, of any length."""
    return np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)


def _record(number: int, centres: FloatArray, chance: np.random.Generator, fields: bool) -> Record:
    embedding = centres[number % len(centres)] + 0.5 * chance.standard_normal(DIMENSION)
    metadata = {
        "year": int(2000 + chance.integers(20)),
        "lang": LANGUAGES[int(chance.integers(len(LANGUAGES)))],
        "draft": bool(chance.integers(2)),
        "tags": [["red"], ["red", "blue"], [], [7, True]][int(chance.integers(4))],
        "source": f"folder/file-{number % 7}.md",
        "nested": {"kept": [1, {"as": "it is"}]},
    }
    if number % 3:
        metadata["rating"] = round(float(chance.uniform(1, 5)), 2)
    if number % 5 == 0:
        metadata["odd \"name.with\\signs'"] = "x"
    text = " ".join(chance.choice(WORDS, size=12)) + f" {own_word(number)}"
    further = fields and number % 3 != 0
    terms = np.sort(chance.choice(500, size=6, replace=False))
    return Record(
        f"chunk/{number:05d}",
        text,
        embedding,
        metadata,
        vectors={"code": chance.standard_normal(8), "pooled": 3 * chance.standard_normal(12)}
        if further
        else {},
        sparse={"splade": SparseVector.of(terms, chance.uniform(0.1, 2, 6))} if further else {},
        blobs={"colbert": chance.bytes(40), "other": b"\x00\xff"} if further else {},
    )
