"""The manifest of a collection: its model, fields and settings, stored as JSON.

A manifest may come from somebody else, so the types of its settings are checked when it is read. Unknown
settings are kept. Whether a value is valid (a model's name, a chunk size) is checked where it is used. The
checks are hand-written because opening a store does not need pydantic otherwise.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from dartboard.errors import ConfigError, InvalidInputError, StoreFormatError
from dartboard.stores.records import Record, check_metadata

FORMAT_VERSION = 1
LEXICAL_SETTINGS = ("k1", "b", "language", "stem", "stop_words")

Metric = Literal["cosine", "dot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorField:
    """A further dense vector of every record.

    Args:
        dimension: How many numbers it has.
        metric: How a search compares it: ``"cosine"`` or ``"dot"`` (dot product).

    Raises:
        ConfigError: the dimension is below 1, or the metric unknown.
    """

    dimension: int
    metric: Metric = "cosine"

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise ConfigError(f"dimension must be >= 1, got {self.dimension}")
        if self.metric not in ("cosine", "dot"):
            raise ConfigError(f"metric must be 'cosine' or 'dot', got {self.metric!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Model, fields and settings of a collection; stored with it, and checked when it is opened.

    Args:
        model: The embedding model's fingerprint.
        dimension: How many numbers an embedding has.
        model_name: The model's name for people.
        vectors: The further dense vectors that records carry, by name.
        sparse: The names of their sparse vectors.
        settings: JSON, stored as given (chunking, calibration, retrievers, ``lexical``, ``hnsw``).
        format_version: Increased when older versions of dartboard cannot read the collection.

    Raises:
        ConfigError: the dimension is below 1.

    Example:
        >>> Manifest(model="minilm-1", dimension=384, vectors={"title": VectorField(dimension=384)})
    """

    model: str
    dimension: int
    model_name: str = ""
    vectors: Mapping[str, VectorField] = field(default_factory=dict)
    sparse: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        if self.dimension < 1:
            raise ConfigError(f"dimension must be >= 1, got {self.dimension}")

    def vector_field(self, name: str | None) -> VectorField:
        """Dimension and metric of a vector of the collection; None is the embedding (cosine)."""
        return VectorField(dimension=self.dimension) if name is None else self.vectors[name]

    def check(self, records: Sequence[Record]) -> None:
        """Check that every record has only the collection's fields, with the right dimensions.

        Raises:
            InvalidInputError: for the first record that does not fit.
        """
        for record in records:
            if record.embedding.size != self.dimension:
                raise InvalidInputError(
                    f"chunk {record.id!r} has {record.embedding.size} dimensions where the collection has "
                    f"{self.dimension}: encode it with {self.model_name or self.model!r}"
                )
            for name, vector in record.vectors.items():
                if name not in self.vectors:
                    raise InvalidInputError(
                        f"chunk {record.id!r} has a vector {name!r}; the collection has "
                        f"{sorted(self.vectors) or 'none beside the embedding'}"
                    )
                if vector.size != self.vectors[name].dimension:
                    raise InvalidInputError(
                        f"chunk {record.id!r}: vector {name!r} has {vector.size} dimensions where "
                        f"{self.vectors[name].dimension} are expected"
                    )
            if unknown := set(record.sparse) - set(self.sparse):
                raise InvalidInputError(
                    f"chunk {record.id!r} has a sparse vector {min(unknown)!r}; the collection has "
                    f"{sorted(self.sparse) or 'none'}"
                )


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """The manifest as stored JSON."""
    return {
        "model": manifest.model,
        "model_name": manifest.model_name,
        "dimension": manifest.dimension,
        "vectors": {name: asdict(vector) for name, vector in sorted(manifest.vectors.items())},
        "sparse": list(manifest.sparse),
        "settings": dict(manifest.settings),
        "format_version": manifest.format_version,
    }


def manifest_from_json(stored: dict[str, Any]) -> Manifest:
    """Read what :func:`manifest_to_json` wrote.

    Raises:
        StoreFormatError: the format is newer, or the manifest is damaged.
    """
    try:
        if stored["format_version"] > FORMAT_VERSION:
            raise StoreFormatError(
                f"made by a newer dartboard (format {stored['format_version']}, this one reads "
                f"{FORMAT_VERSION}): upgrade dartboard"
            )
        _check_settings(stored["settings"])
        for name, kind in (("model", str), ("model_name", str), ("dimension", int)):
            if not isinstance(stored[name], kind):
                raise TypeError(f"{name} is {stored[name]!r}")
        return Manifest(
            model=stored["model"],
            model_name=stored["model_name"],
            dimension=stored["dimension"],
            vectors={name: VectorField(**vector) for name, vector in stored["vectors"].items()},
            sparse=tuple(stored["sparse"]),
            settings=stored["settings"],
            format_version=stored["format_version"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise StoreFormatError(f"the collection's manifest is damaged ({error!r})") from error


def lexical_settings(manifest: Manifest) -> dict[str, Any]:
    """The options of the BM25 index that ``settings["lexical"]`` sets.

    ``{"k1": 1.2, "b": 0.75, "language": "english", "stem": true, "stop_words": true}`` are the defaults.

    Raises:
        ConfigError: a setting is unknown.
    """
    given = dict(manifest.settings.get("lexical", {}))
    if unknown := sorted(set(given) - set(LEXICAL_SETTINGS)):
        raise ConfigError(f"unknown lexical setting {unknown[0]!r}: use {', '.join(LEXICAL_SETTINGS)}")
    return given


def with_changes(manifest: Manifest, changes: Mapping[str, Any], collection: str) -> Manifest:
    """The manifest with these settings changed and the others kept; None removes one."""
    check_metadata(dict(changes), f"settings of {collection}")
    settings = {**manifest.settings, **changes}
    return replace(manifest, settings={name: value for name, value in settings.items() if value is not None})


def _check_settings(settings: Any) -> None:
    """Reject settings that dartboard cannot have written; the error names the setting."""
    if not _is_object(settings):
        raise _malformed("settings", "an object", settings)
    for name, (expected, is_sound) in _KNOWN_SETTINGS.items():
        if name in settings and not is_sound(settings[name]):
            raise _malformed(name, expected, settings[name])


def _malformed(name: str, expected: str, found: object) -> StoreFormatError:
    shown = repr(found)
    return StoreFormatError(
        f"the collection's setting {name!r} is damaged, or not written by dartboard: expected {expected}, "
        f"got {shown if len(shown) <= 100 else shown[:100] + '…'}. Index again into another collection"
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\x00" not in value


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _object_of(is_sound: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: _is_object(value) and all(map(is_sound, value.values()))


def _is_chunking(value: Any) -> bool:
    """Check types only; unknown names are rejected where the settings are used."""
    return _is_object(value) and all(
        isinstance(given, str) if name == "method" else isinstance(given, int) and not _is_bool(given)
        for name, given in value.items()
    )


def _are_levels(value: Any) -> bool:
    return _object_of(_is_number)(value) and set(value) == {"unrelated", "related"}


def _is_lexical(value: Any) -> bool:
    checks = (_is_number, _is_number, _is_text, _is_bool, _is_bool)
    return _is_object(value) and all(
        is_sound(value[name])
        for name, is_sound in zip(LEXICAL_SETTINGS, checks, strict=True)
        if name in value
    )


_KNOWN_SETTINGS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "model": ("a name", _is_text),
    "retriever": ("a name", _is_text),
    "root": ("a path", _is_text),
    "retrievers": ("an object of objects", _object_of(_is_object)),
    "fields": ("an object of lists of names", _object_of(_are_names)),
    "chunking": ("an object with a method and whole numbers", _is_chunking),
    "calibration": ("an object", _is_object),
    "similarity_levels": ("the numbers unrelated and related", _are_levels),
    "lexical": ("an object of k1, b, language, stem and stop_words", _is_lexical),
    "hnsw": ("an object", _is_object),
}
