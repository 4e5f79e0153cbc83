"""Values that JSON can hold: no NaN, no infinity, no arrays."""

import math
from collections.abc import Mapping
from typing import Any


def finite(value: float) -> float | None:
    """The number, or None where it is not finite."""
    number = float(value)
    return number if math.isfinite(number) else None


def plain(value: Any) -> Any:
    """Numbers, text, lists and dictionaries with the same content; what is none of these becomes text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    return str(value)
