"""YAML and JSON files read into pydantic models; every problem is told with its line.

Only plain data comes of a file: no objects are created. Aliases are refused, because a few hundred bytes of
them can expand to more than memory holds, and so are keys that occur twice. An unquoted value that YAML does
not read as text (``NO``, ``012``, ``1:30``) is an error where a text is expected, never a guess.
"""

import difflib
import json
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BeforeValidator, TypeAdapter, ValidationError

from dartboard.datasets.records import Place
from dartboard.errors import DatasetError, MissingExtraError

Model = TypeVar("Model")

_ODD = frozenset({"Cc", "Cs", "Zl", "Zp"})


def read_yaml(path: Path, model: type[Model]) -> tuple[Model, "Lines"]:
    """A YAML or JSON file as a model, and where each part of it begins.

    Raises:
        DatasetError: the file cannot be read, or does not fit the model; the message names the line.
    """
    found, problems, lines = read_lines(path, model)
    if found is None:
        raise Place(path, problems[0][0]).error(problems[0][1])
    return found, lines


def read_lines(path: Path, model: type[Model]) -> tuple[Model | None, list[tuple[int, str]], "Lines"]:
    """A file as a model, or all that is wrong with it by line; and where each part of it begins.

    Raises:
        DatasetError: the file cannot be read at all.
    """
    plain, lines = _parsed(path)
    reader: Any = adapter(cast(Any, model))
    try:
        return reader.validate_python(plain), [], lines
    except ValidationError as error:
        return None, sorted(problems_of(error, model, lines)), lines


class Lines:
    """The lines of a file's parts."""

    def __init__(self, node: Any = None) -> None:
        self._node = node

    def of(self, *way: str | int) -> int:
        """The line on which a part begins; of the part that holds it, if it is not there itself.

        Steps that the file has not, such as pydantic's names of the members of a union, are passed over.
        """
        node, line = self._node, 1
        for step in way:
            inside = _inside(node, step)
            if inside is not None:
                line, node = _line(inside[0]), inside[1]
        return line


def problems_of(error: ValidationError, model: Any, lines: Lines) -> Iterator[tuple[int, str]]:
    """Lines and sentences of all that pydantic found."""
    for one in error.errors():
        shown = ".".join(map(str, one["loc"])) or "the file"
        if one["type"] in ("unexpected_keyword_argument", "extra_forbidden"):
            key = str(one["loc"][-1])
            near = difflib.get_close_matches(key, _names(model), n=1)
            told = f"unknown key {key!r}" + (f": did you mean {near[0]!r}?" if near else "")
        elif one["type"] in ("missing", "missing_argument"):
            told = f"{shown!r} is missing"
        else:
            what = one["msg"].removeprefix("Value error, ")
            got = one["input"]
            more = f", got {got!r:.60}: put it in quotes" if one["type"] == "string_type" else ""
            told = f"{shown}: {what}{more}"
        yield lines.of(*one["loc"]), told


def odd_character(text: str) -> str | None:
    """The first character that ids may not contain: control characters, line ends, lone surrogates."""
    return next((one for one in text if unicodedata.category(one) in _ODD), None)


def _named(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    if (odd := odd_character(text)) is not None:
        raise ValueError(f"{text!r} holds the control character U+{ord(odd):04X}: take it out")
    return text


def _written(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


def _sound(text: Any) -> Any:
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


Identifier = Annotated[str, AfterValidator(_named)]
"""Text that can name something."""
Words = Annotated[str, BeforeValidator(_sound)]
"""Any text; half a surrogate pair, which no file can hold, becomes a question mark."""
Text = Annotated[Words, AfterValidator(_written)]
"""Text that is not blank."""


@lru_cache(maxsize=64)
def adapter(model: Any) -> TypeAdapter[Any]:
    """The reader and writer of a model."""
    return TypeAdapter(model)


@lru_cache(maxsize=16)
def _names(model: Any) -> tuple[str, ...]:
    schema = adapter(model).json_schema()
    parts = [schema, *schema.get("$defs", {}).values()]
    return tuple(dict.fromkeys(name for part in parts for name in part.get("properties", {})))


def _parsed(path: Path) -> tuple[Any, Lines]:
    """Plain data, and its lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Place(path, 1).error(f"not UTF-8 text ({error.reason})") from None
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}") from error
    if path.suffix == ".json":
        try:
            return json.loads(text), Lines()
        except (ValueError, RecursionError) as error:
            raise Place(path, getattr(error, "lineno", 1)).error(f"not JSON ({error})") from None
    try:
        import yaml
    except ImportError as error:  # pragma: no cover - the tests have it
        raise MissingExtraError("pyyaml", "eval", "A YAML file of data") from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                line = _line(event)
                told = f"alias *{event.anchor}: write the value out, aliases are refused"
                raise Place(path, line).error(told)
        node = yaml.compose(text, Loader=loader)
        if node is None:
            raise Place(path, 1).error("the file is empty")
        return _plain(path, node, yaml.constructor.SafeConstructor()), Lines(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, DatasetError):
            raise
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Place(path, line).error(f"not YAML ({reason})") from None


def _plain(path: Path, node: Any, constructor: Any) -> Any:
    if node.id == "sequence":
        return [_plain(path, one, constructor) for one in node.value]
    if node.id == "scalar":
        return constructor.construct_object(node)
    found: dict[str, Any] = {}
    for key, value in node.value:
        if key.value in found:
            raise Place(path, _line(key)).error(f"key {key.value!r} occurs twice")
        found[key.value] = _plain(path, value, constructor)
    # A key without a value is one that is not there.
    return {name: value for name, value in found.items() if value is not None}


def _line(node: Any) -> int:
    line: int = node.start_mark.line + 1
    return line


def _inside(node: Any, step: str | int) -> tuple[Any, Any] | None:
    """Where a part of a node begins, and the part."""
    if node is None or node.id == "scalar":
        return None
    if node.id == "sequence":
        fits = isinstance(step, int) and step < len(node.value)
        return (node.value[step], node.value[step]) if fits else None
    return next(((key, value) for key, value in node.value if key.value == step), None)
