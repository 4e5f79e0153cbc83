"""The lines of a journal: JSON with a checksum, so that a line which is not as it was written is known."""

import json
import zlib
from dataclasses import asdict, fields
from typing import Any

from dartboard.llm.usage import Usage
from dartboard.mining.verdicts import Verdict

FORMAT = 1


def plain_verdict(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON holds it; its usage stands beside it."""
    plain = asdict(verdict)
    del plain["usage"]
    if verdict.answered:
        del plain["answered"]
    return plain


def read_verdict(plain: dict[str, Any], usage: Usage) -> Verdict:
    """The verdict again; a field that this version does not know is an error."""
    unknown = plain.keys() - {field.name for field in fields(Verdict)}
    if unknown:
        raise TypeError(f"unknown field {min(unknown)!r}")
    return Verdict(**{**plain, "votes": tuple(plain["votes"]), "usage": usage})


def write_line(entry: dict[str, Any]) -> bytes:
    """A line with its checksum and its end."""
    return (_text(entry | {"crc": _crc(entry)}) + "\n").encode()


def _text(entry: dict[str, Any]) -> str:
    return json.dumps(entry, sort_keys=True, separators=(",", ":"))


def _crc(entry: dict[str, Any]) -> str:
    return f"{zlib.crc32(_text(entry).encode()):08x}"


def read_line(line: bytes) -> dict[str, Any] | None:
    """A line's contents; None where it is not as it was written."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.pop("crc", None) != _crc(entry):
        return None
    return entry
