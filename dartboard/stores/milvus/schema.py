"""The names, fields and indexes of a collection in Milvus.

Milvus allows names of at most 255 letters, digits and underscores. A collection ``default`` becomes
``dartboard_default``; each byte of other characters becomes ``_`` and two hex digits. A name that is too long
for that becomes a digest; the original is then read from the collection's properties.

id VARCHAR · text VARCHAR · lexemes VARCHAR with a BM25 function into ``bm25`` · metadata JSON · terms and
dynamic fields for filters · embedding FLOAT_VECTOR · vector_… FLOAT_VECTOR · sparse_… SPARSE_FLOAT_VECTOR ·
blobs ARRAY of base64. Two properties of the collection hold its name, manifest and layout.
"""

import json
import re
from dataclasses import asdict, dataclass
from typing import Any

from pymilvus import DataType, Function, FunctionType, MilvusClient

from dartboard.errors import StoreFormatError
from dartboard.stores.manifest import Manifest, lexical_settings, manifest_from_json, manifest_to_json
from dartboard.stores.milvus.filter_expressions import Layout, digest

MANIFEST_PROPERTY = "dartboard.manifest"
LAYOUT_PROPERTY = "dartboard.layout"
LONGEST_TEXT = 65_535
MOST_PIECES = 4_096
_HNSW = {"M": 32, "efConstruction": 200}
_METRICS = {"cosine": "COSINE", "dot": "IP"}
_PREFIX, _LONG_PREFIX = "dartboard_", "dartboardx_"
_LONGEST_NAME = 200
_PLAIN = re.compile(r"[A-Za-z0-9]")
_CODED = re.compile(rb"_([0-9a-f]{2})")


def collection_name(name: str) -> str:
    """The collection's name in Milvus."""
    coded = _encode(name)
    return _PREFIX + coded if len(coded) <= _LONGEST_NAME else _LONG_PREFIX + digest(name, 32)


def is_ours(stored: str) -> bool:
    """Whether dartboard made this Milvus collection."""
    return stored.startswith((_PREFIX, _LONG_PREFIX))


def readable_name(stored: str) -> str | None:
    """The inverse of :func:`collection_name`; None for a digest."""
    if not stored.startswith(_PREFIX):
        return None
    coded = stored.removeprefix(_PREFIX).encode()
    return _CODED.sub(lambda found: bytes([int(found[1], 16)]), coded).decode("utf-8", "replace")


def field_name(kind: str, name: str) -> str:
    """The name of a further vector in Milvus (``kind`` vector or sparse)."""
    coded = _encode(name)
    return f"{kind}_{coded if len(coded) <= _LONGEST_NAME else digest(name, 32)}"


def _encode(name: str) -> str:
    return "".join(
        character
        if _PLAIN.fullmatch(character)
        else "".join(f"_{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        for character in name
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionLayout:
    """The layout of a collection: where terms are stored, and the index of dense vectors."""

    name: str
    terms: Layout
    index: str


def choose_layout(name: str, *, is_lite: bool, index: str) -> CollectionLayout:
    """Milvus Lite scans, so it gets a text that scans fast and an exact index; servers have indexes."""
    kind = index.upper() if index != "auto" else "FLAT" if is_lite else "HNSW"
    return CollectionLayout(name=name, terms="text" if is_lite else "array", index=kind)


def properties(manifest: Manifest, layout: CollectionLayout) -> dict[str, str]:
    """The properties that dartboard stores with a Milvus collection."""
    return {**manifest_property(manifest), LAYOUT_PROPERTY: json.dumps(asdict(layout))}


def manifest_property(manifest: Manifest) -> dict[str, str]:
    """The manifest as a property."""
    return {MANIFEST_PROPERTY: json.dumps(manifest_to_json(manifest))}


def read_properties(stored: dict[str, str], where: str) -> tuple[Manifest, CollectionLayout]:
    """Read what :func:`properties` wrote."""
    try:
        layout = CollectionLayout(**json.loads(stored[LAYOUT_PROPERTY]))
        return manifest_from_json(json.loads(stored[MANIFEST_PROPERTY])), layout
    except (KeyError, ValueError, TypeError) as error:
        raise StoreFormatError(
            f"{where} in Milvus was not made by dartboard, or its properties were changed ({error!r})"
        ) from error


def build_schema(manifest: Manifest, layout: CollectionLayout) -> Any:
    """The collection's fields for the client."""
    schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=LONGEST_TEXT)
    schema.add_field("text", DataType.VARCHAR, max_length=LONGEST_TEXT)
    schema.add_field(
        "lexemes",
        DataType.VARCHAR,
        max_length=LONGEST_TEXT,
        enable_analyzer=True,
        analyzer_params={"tokenizer": "standard"},
    )
    schema.add_field("metadata", DataType.JSON)
    if layout.terms == "array":
        _add_array(schema, "terms", MOST_PIECES, 64)
    else:
        schema.add_field("terms", DataType.VARCHAR, max_length=LONGEST_TEXT)
    _add_array(schema, "blobs", MOST_PIECES, LONGEST_TEXT)
    schema.add_field("embedding", DataType.FLOAT_VECTOR, dim=manifest.dimension)
    for name, field in manifest.vectors.items():
        schema.add_field(field_name("vector", name), DataType.FLOAT_VECTOR, dim=field.dimension)
    for name in ("bm25", *(field_name("sparse", name) for name in manifest.sparse)):
        schema.add_field(name, DataType.SPARSE_FLOAT_VECTOR)
    schema.add_function(
        Function(
            name="lexemes_to_bm25",
            function_type=FunctionType.BM25,
            input_field_names=["lexemes"],
            output_field_names=["bm25"],
        )
    )
    return schema


def index_kinds(manifest: Manifest, layout: CollectionLayout) -> dict[str, dict[str, Any]]:
    """The index of each field that has one."""
    lexical = {"k1": 1.2, "b": 0.75, **lexical_settings(manifest)}
    build = _HNSW if layout.index == "HNSW" else {}
    dense = {"embedding": "cosine"} | {
        field_name("vector", name): field.metric for name, field in manifest.vectors.items()
    }
    kinds: dict[str, dict[str, Any]] = {
        name: {"index_type": layout.index, "metric_type": _METRICS[metric], "params": dict(build)}
        for name, metric in dense.items()
    }
    kinds["bm25"] = {
        "index_type": "SPARSE_INVERTED_INDEX",
        "metric_type": "BM25",
        "params": {"bm25_k1": lexical["k1"], "bm25_b": lexical["b"]},
    }
    for name in manifest.sparse:
        kinds[field_name("sparse", name)] = {
            "index_type": "SPARSE_INVERTED_INDEX",
            "metric_type": "IP",
            "params": {},
        }
    if layout.terms == "array":
        kinds["terms"] = {"index_type": "INVERTED"}
    return kinds


def _add_array(schema: Any, name: str, capacity: int, longest: int) -> None:
    schema.add_field(
        name, DataType.ARRAY, element_type=DataType.VARCHAR, max_capacity=capacity, max_length=longest
    )
