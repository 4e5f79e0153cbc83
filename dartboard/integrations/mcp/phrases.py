"""Numbers and names as they stand in a sentence."""

import json


def share(value: float) -> str:
    """Per cent, ``52.3%``; a power of ten, ``1e-05``, where per cent would read 0 for what is not nothing."""
    return f"{value:.0e}" if 0.0 < value < 0.0005 else f"{value:.1%}"


def one_line(name: str) -> str:
    """An id or a source, which documents may have chosen: one line, and nothing unseen in it."""
    return name if name.isprintable() else json.dumps(name)
