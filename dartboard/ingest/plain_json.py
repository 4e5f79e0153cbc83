"""Metadata as every store takes it: JSON, finite, not too deep, integers that a double can hold."""

import math
from collections.abc import Mapping
from typing import Any

_DEEPEST = 8
_LARGEST_INTEGER = 2**53


def plain(value: Any, depth: int = 0) -> Any:
    """The value, with what stores refuse turned into text."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "ignore").decode("utf-8")
    if isinstance(value, int):
        return value if abs(value) <= _LARGEST_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth < _DEEPEST and isinstance(value, Mapping):
        pairs = ((plain(str(name)), inner) for name, inner in value.items())
        return {name: plain(inner, depth + 1) for name, inner in pairs if name}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [plain(inner, depth + 1) for inner in value]
    return plain(str(value))
