"""Names that Milvus allows: letters, digits and underscores, at most 255.

A collection ``default`` becomes ``dartboard_default``; other characters become ``_`` and the two hex digits
of each of their bytes. A name too long for that becomes a digest, and is then read from the collection's
own properties.
"""

import hashlib
import re

_PREFIX = "dartboard_"
_LONG_PREFIX = "dartboardx_"
_LONGEST = 200
_PLAIN = re.compile(r"[A-Za-z0-9]")
_CODED = re.compile(rb"_([0-9a-f]{2})")


def digest(text: str, size: int = 12) -> str:
    """The first ``size`` bytes of a hash, as hex."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size].hex()


def collection_name(name: str) -> str:
    """What Milvus calls the collection."""
    coded = _encode(name)
    return _PREFIX + coded if len(coded) <= _LONGEST else _LONG_PREFIX + digest(name, 32)


def is_ours(stored: str) -> bool:
    """Whether a collection in Milvus is one of dartboard's."""
    return stored.startswith((_PREFIX, _LONG_PREFIX))


def readable_name(stored: str) -> str | None:
    """The name that :func:`collection_name` was given; None where only a digest is left of it."""
    if not stored.startswith(_PREFIX):
        return None
    coded = stored.removeprefix(_PREFIX).encode()
    return _CODED.sub(lambda found: bytes([int(found[1], 16)]), coded).decode("utf-8", "replace")


def field_name(kind: str, name: str) -> str:
    """What Milvus calls a further vector (``kind`` vector or sparse)."""
    coded = _encode(name)
    return f"{kind}_{coded if len(coded) <= _LONGEST else digest(name, 32)}"


def _encode(name: str) -> str:
    return "".join(
        character
        if _PLAIN.fullmatch(character)
        else "".join(f"_{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))
        for character in name
    )
