"""Messages that hold nothing of the request: what a value was is the caller's own knowledge.

Library errors quote what they were given, which helps at a prompt and harms in a response (a page that
shows it, a log that keeps it). Quoted parts go, unless they are our own words; so do values after "got",
and asides in brackets that would be nothing but such parts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dartboard.wrong_names import right_name

_QUOTED = re.compile(r"""(?<![\w])(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_UNCLOSED = re.compile(r"""(?<![\w'"…])['"](?![^'"]*['"]).*$""", re.DOTALL)
_ASIDE = re.compile(r" \((?:near|of) …(?: in …)?\)")
_GOT = re.compile(r"[,;]? \bgot\b [^:;]*")
_OWN = frozenset(
    {
        *(
            "auto",
            "cosine",
            "crossencoder",
            "hybrid",
            "scaled_cosine",
            "euclidean",
            "dartboard",
            "mmr",
            "top_k",
        ),
        *("text", "en", "and", "or", "not", "exists", "field", "op", "value", "year", ">=", "ids"),
    }
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}\Z")
_BRANCHES = frozenset(
    {"float", "int", "str", "bool", "list", "dict", "body", "constrained-int", "constrained-float"}
)


_KINDS = {
    "model_type": "should be a JSON object",
    "model_attributes_type": "should be a JSON object",
    "dict_type": "should be a JSON object",
    "list_type": "should be a list",
    "string_type": "should be text",
    "int_type": "should be a whole number",
    "int_from_float": "should be a whole number",
    "float_type": "should be a number",
    "finite_number": "should be a finite number",
    "bool_type": "should be true or false",
    "string_pattern_mismatch": "is not of the form that /openapi.json describes",
}
"""What the framework calls by names of its own, as a caller would."""
_SIZES = frozenset({"too_short", "too_long", "string_too_short", "string_too_long"})


def plain(message: str) -> str:
    """The message without what it quotes."""
    kept = _QUOTED.sub(lambda found: found.group() if found.group()[1:-1] in _OWN else "…", message)
    kept = _UNCLOSED.sub("…", kept)
    return " ".join(_GOT.sub("", _ASIDE.sub("", kept)).split()).rstrip(": ")


def field_errors(errors: Iterable[Mapping[str, Any]], body: Any = None) -> list[dict[str, str]]:
    """Fields and what is wrong with each; several ways to be right are joined by "or".

    ``body`` is the model that the request was read by; it knows the right names of fields.
    """
    found: dict[str, list[str]] = {}
    for error in errors:
        message = _message(error, body)
        said = found.setdefault(_field(error), [])
        if message not in said:
            said.append(message)
    return [{"field": field, "message": " or ".join(said)} for field, said in found.items()]


def _field(error: Mapping[str, Any]) -> str:
    parts = [part for part in error["loc"] if part not in _BRANCHES and not _is_branch(part)]
    unknown = error["type"] == "extra_forbidden" and parts
    shown = [str(part) if isinstance(part, int) or _NAME.match(str(part)) else "…" for part in parts]
    if unknown and shown[-1] == "…":
        shown[-1] = "(a field)"
    return ".".join(shown) or "body"


def _is_branch(part: Any) -> bool:
    """Whether a place names a member of a union, not a field."""
    return isinstance(part, str) and ("[" in part or "(" in part)


def _right_name(place: Sequence[Any], body: Any) -> str | None:
    """The field that was probably meant at a place such as ("body", "config", "k")."""
    for part in place[1:-1]:
        field = getattr(body, "model_fields", {}).get(part)
        body = field.annotation if field is not None else None
    fields = getattr(body, "model_fields", {})
    return right_name(str(place[-1]), [field.alias or name for name, field in fields.items()])


def _message(error: Mapping[str, Any], body: Any) -> str:
    kind = error["type"]
    if kind == "extra_forbidden":
        meant = _right_name(error["loc"], body)
        return f"there is no such field: {f'did you mean {meant}?' if meant else 'see /openapi.json'}"
    if kind == "missing":
        return "is required"
    if kind in ("value_error", "assertion_error"):
        return plain(str(error["msg"]).removeprefix("Value error, "))
    if kind in _KINDS:
        return _KINDS[kind]
    if kind in _SIZES:
        return _size(kind, error.get("ctx") or {}, str(error["msg"]))
    return str(error["msg"]).replace("Input should", "should")


def _size(kind: str, context: Mapping[str, Any], said: str) -> str:
    """A length that is not allowed; the framework calls letters items where a check stands before."""
    limit = int(context.get("min_length", context.get("max_length", 0)))
    listed = (kind.startswith("too_") and said.startswith(("List", "Dict"))) or context.get(
        "field_type"
    ) == "List"
    if limit == 1 and "min_length" in context:
        return "is empty: give at least one" if listed else "is empty"
    bound = "at least" if "min_length" in context else "at most"
    return f"should have {bound} {limit} {'entries' if listed else 'characters'}"
