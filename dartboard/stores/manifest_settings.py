"""The types of a manifest's settings, checked where a manifest is read: it may come from somebody else.

Settings that dartboard does not know are kept as they are. Whether a value is a good one (a model's name, a
chunk size) is said where it is used.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from dartboard.errors import StoreFormatError


def check_settings(settings: object) -> None:
    """Refuse settings that dartboard cannot have written.

    Raises:
        StoreFormatError: one that names the setting.
    """
    if not isinstance(settings, Mapping):
        raise _malformed("settings", "an object", settings)
    for name, (expected, is_sound) in _KNOWN.items():
        if name in settings and not is_sound(settings[name]):
            raise _malformed(name, expected, settings[name])


def _malformed(name: str, expected: str, found: object) -> StoreFormatError:
    shown = repr(found)
    return StoreFormatError(
        f"the collection's setting {name!r} is damaged, or not written by dartboard: expected {expected}, "
        f"got {shown if len(shown) <= 100 else shown[:100] + '…'}. Index again into another collection"
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\x00" not in value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _is_object(value: object) -> bool:
    return isinstance(value, Mapping)


def _are_objects(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(each, Mapping) for each in value.values())


def _are_names(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(names, list) and all(isinstance(name, str) for name in names) for names in value.values()
    )


def _is_chunking(value: object) -> bool:
    """Names that are unknown are refused where the settings are used."""
    return isinstance(value, Mapping) and all(
        isinstance(given, str) if name == "method" else isinstance(given, int) and not isinstance(given, bool)
        for name, given in value.items()
    )


def _are_levels(value: object) -> bool:
    if not isinstance(value, Mapping) or set(value) != {"unrelated", "related"}:
        return False
    return all(_is_number(level) for level in value.values())


def _is_lexical(value: object) -> bool:
    kinds: dict[str, Callable[[object], bool]] = {
        "k1": _is_number,
        "b": _is_number,
        "language": _is_text,
        "stem": lambda given: isinstance(given, bool),
        "stop_words": lambda given: isinstance(given, bool),
    }
    return isinstance(value, Mapping) and all(
        kinds[name](given) for name, given in value.items() if name in kinds
    )


_KNOWN: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "model": ("a name", _is_text),
    "retriever": ("a name", _is_text),
    "root": ("a path", _is_text),
    "retrievers": ("an object of objects", _are_objects),
    "fields": ("an object of lists of names", _are_names),
    "chunking": ("an object with a method and whole numbers", _is_chunking),
    "calibration": ("an object", _is_object),
    "similarity_levels": ("the numbers unrelated and related", _are_levels),
    "lexical": ("an object of k1, b, language, stem and stop_words", _is_lexical),
    "hnsw": ("an object", _is_object),
}
