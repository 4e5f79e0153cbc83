"""What an uploaded file may be called: a client's name is a wish, never a path.

Folders of a name are kept (``handbook/install.md``), whatever leads elsewhere is not: roots, drives, ``..``,
control characters, marks that turn the direction of writing. Two files of one name are kept apart:
``notes.txt`` and ``notes (2).txt``, also where a file system takes ``Notes.txt`` for the same.
"""

import re
import unicodedata
from collections.abc import Sequence

UNNAMED = "unnamed"

_DEEPEST = 24
_SEGMENT_BYTES = 180
"""File systems take 255; a number may have to be added."""
_NAME_BYTES = 1000
_DROPPED = ("Cc", "Cf", "Cs")
"""Control characters, marks without a shape, half surrogates."""
_JOINERS = "\u200c\u200d"
"""Marks without a shape that belong to words and to pictures."""
_ESCAPED = {"%22": '"', "%0D": "", "%0A": "", "%0d": "", "%0a": ""}
"""What browsers write for quotes and line ends in the name of a part."""


def safe_name(given: str) -> str:
    """A relative name with forward slashes that stays below its folder, whatever was given."""
    for code, sign in _ESCAPED.items():
        given = given.replace(code, sign)
    parts = [_segment(part) for part in re.split(r"[/\\]+", given)]
    kept = [part for part in parts if part][-_DEEPEST:]
    while len(kept) > 1 and sum(len(part.encode()) + 1 for part in kept) > _NAME_BYTES:
        kept.pop(0)
    return "/".join(kept) or UNNAMED


class Distinct:
    """Names that were given out, so that none is given twice and no file stands where a folder is."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()
        self._last: dict[str, int] = {}

    def take(self, name: str) -> str:
        """The name, with a number where it is taken."""
        parts = name.split("/")
        for depth in range(1, len(parts)):
            parts[:depth] = self._free(parts[:depth], folder=True)
            self._folders.add(_key(parts[:depth]))
        parts = self._free(parts, folder=False)
        self._files.add(_key(parts))
        return "/".join(parts)

    def _free(self, parts: list[str], *, folder: bool) -> list[str]:
        """The parts, the last one numbered until nothing stands there; a folder may stand there twice."""
        wanted = _key(parts)
        *above, last = parts
        found = parts
        while _key(found) in self._files or (not folder and _key(found) in self._folders):
            number = self._last[wanted] = self._last.get(wanted, 1) + 1
            stem, suffix = (last, "") if folder else _split(last)
            found = [*above, f"{stem} ({number}){suffix}"]
        return found


def _segment(part: str) -> str:
    """One folder or file name; empty where nothing of it can be used."""
    text = unicodedata.normalize("NFC", part)
    text = "".join(sign for sign in text if sign in _JOINERS or unicodedata.category(sign) not in _DROPPED)
    text = re.sub(r"^[A-Za-z]:", "", text).strip()
    text = text.rstrip(" .")  # Windows would drop them behind our back; "." and ".." go with them
    return _cut(text)


def _cut(text: str) -> str:
    if len(text.encode()) <= _SEGMENT_BYTES:
        return text
    stem, suffix = _split(text)
    room = _SEGMENT_BYTES - len(suffix.encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(" .") + suffix


def _split(text: str) -> tuple[str, str]:
    """Stem and suffix; a long suffix is no suffix."""
    stem, dot, suffix = text.rpartition(".")
    return (stem, dot + suffix) if stem and len(suffix.encode()) <= 16 else (text, "")


def _key(parts: Sequence[str]) -> str:
    """What a file system that is careless about case would compare."""
    return unicodedata.normalize("NFC", "/".join(parts).casefold())
