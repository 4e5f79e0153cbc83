"""Definitions in source code: functions, classes and their methods, and the code between them.

Python is parsed. Decorators and the comments directly above belong to a definition, and a method repeats
the line of its class. Python that does not parse (another version, a template) and all other languages use
patterns: a small table has the look of a definition's first line for each family of languages. A definition
belongs to the nearest type, module or namespace above it with less indentation; code that is indented deeper
than a function is its body. We use no grammar: tree-sitter is not a dependency and needs a compiled package
per language, and chunking only needs to know where definitions begin.
"""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from dartboard.ingest.documents import MAX_HEADINGS, Block
from dartboard.ingest.sentences import lines_with_starts

_ID = r"([A-Za-z_$][\w$]*[?!]?)"
_WORDS = (
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|sealed|open|override|async"
    r"|partial|virtual|readonly|declare|inline|data|case|suspend|pub(?:\([\w: ]+\))?|unsafe|extern|const"
    r"|fileprivate|mutating|required|convenience)\s+)*"
)
_TYPES = "class|interface|enum|struct|trait|object|namespace|module|protocol|record|extension"
_TYPE = rf"{_WORDS}(?:{_TYPES})\s+{_ID}"
_TYPED_FUNCTION = (
    r"(?!(?:return|else|if|for|while|switch|case|throw|new|do|using|typedef|delete)\b)"
    r"[\w:<>,*&\[\]~ ]+?[\s*&]([\w:~]+)\s*\([^;]*$"
)
_JS_METHOD = (
    r"(?!(?:if|for|while|switch|catch|return|function|with)\b)"
    rf"{_WORDS}(?:get\s+|set\s+|\*\s*)?#?{_ID}\s*\([^;]*\)\s*(?::[^{{;]+)?\{{\s*$"
)
_JS_VALUE = rf"{_WORDS}(?:const|let|var)\s+{_ID}\s*=\s*(?:async\s*)?(?:function\b|\(|\w+\s*=>)"
_SQL = (
    r"(?i:create|alter)\s+(?:(?i:or\s+replace|temporary|temp|unique|materialized)\s+)*"
    r"(?i:table|view|function|procedure|trigger|index|type)\s+(?:(?i:if\s+not\s+exists)\s+)?([\w.\"`]+)"
)

_LOOKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "python": ((rf"class\s+{_ID}",), (rf"(?:async\s+)?def\s+{_ID}",)),
    "javascript": ((_TYPE,), (rf"{_WORDS}function\s*\*?\s*{_ID}", _JS_VALUE, _JS_METHOD)),
    "java": (
        (_TYPE,),
        (rf"{_WORDS}fun\s+(?:<[^>]*>\s*)?(?:[\w<>]+\.)?{_ID}", rf"{_WORDS}def\s+{_ID}", _TYPED_FUNCTION),
    ),
    "go": ((), (rf"func\s+(?:\([^)]*\)\s*)?{_ID}", rf"type\s+{_ID}\s")),
    "rust": (
        (r"(?:pub\s+)?(?:unsafe\s+)?(?:impl|trait|mod)\b(?:<[^>]*>)?\s+([\w:<>, ']+?)\s*(?:\{|where|$)",),
        (rf"{_WORDS}(?:fn|struct|enum|union|type|macro_rules!)\s+{_ID}",),
    ),
    "c": (
        (rf"(?:template\s*<.*>\s*)?{_TYPE}[^;]*$",),
        (_TYPED_FUNCTION, r"((?:\w+::)+~?\w+)\s*\([^;]*$", rf"\#\s*define\s+{_ID}\("),
    ),
    "ruby": ((r"(?:class|module)\s+([\w:]+)",), (r"def\s+(?:self\.)?([\w?!=\[\]]+)",)),
    "php": ((_TYPE,), (rf"{_WORDS}function\s+&?\s*{_ID}",)),
    "swift": (
        (rf"(?:@\w+\s+)*{_TYPE}",),
        (rf"(?:@\w+\s+)*{_WORDS}(?:class\s+)?func\s+{_ID}", rf"{_WORDS}(init)\s*[(<?]"),
    ),
    "shell": ((), (r"function\s+([\w:.-]+)", r"([\w:.-]+)\s*\(\s*\)")),
    "sql": ((), (_SQL,)),
    "lua": ((), (r"(?:local\s+)?function\s+([\w.:]+)", r"(?:local\s+)?([\w.]+)\s*=\s*function")),
    "elixir": ((r"(?:defmodule|defprotocol|defimpl)\s+([\w.]+)",), (r"def(?:p|macrop?)?\s+([\w.?!]+)",)),
    "r": ((), (r"([\w.]+)\s*(?:<-|=)\s*function",)),
    "julia": ((rf"module\s+{_ID}",), (rf"(?:function|macro|(?:mutable\s+)?struct)\s+{_ID}",)),
    "perl": ((), (r"(?:sub|package)\s+([\w:]+)",)),
}
"""By family: patterns of definitions that contain others, and of all others; the group is the name."""
_LONGEST = 300
"""Longer lines are data, and slow to match."""
_ATTACHED = re.compile(r"\s*(?://|/?\*|#(?!\s*(?:include|define|undef|if|el|endif|pragma|import))|--|@|\[\w)")
_LONGEST_HEAD = 8
"""A longer head of a definition is repeated by its first line only."""
_LONGEST_PARSED = 1_000_000
"""A parsed module takes a hundred times its size in memory; longer files are data."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def code_blocks(text: str, language: str) -> tuple[Block, ...]:
    """The definitions of a source file in a language of :func:`dartboard.ingest.readers.language_of`, and the
    code between them.
    """
    parse = language == "python" and len(text) <= _LONGEST_PARSED
    parsed = _python(text) if parse else None
    found = _by_looks(text, language) if parsed is None else parsed
    return tuple(_with_code(text, found))


def _with_code(text: str, definitions: Iterable[Block]) -> Iterator[Block]:
    """Everything between the definitions as blocks of code."""
    at = 0
    for block in islice(definitions, MAX_HEADINGS):
        if text[at : block.start].strip():
            yield Block(at, block.start, "code")
        yield block
        at = block.end
    if text[at:].strip():
        yield Block(at, len(text), "code")


def _python(text: str) -> list[Block] | None:
    """The definitions of a Python module; None if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _PythonOutline(text).read(module)


class _PythonOutline:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._offsets = [0]
        for line in self._lines:
            self._offsets.append(self._offsets[-1] + len(line) + 1)
        self._offsets[-1] -= 1  # the last line has no line end
        self._blocks: dict[int, Block] = {}  # by line from 0; a later rule overrides an earlier one

    def read(self, module: ast.Module) -> list[Block]:
        """The definitions in order; code after one belongs to what is around it."""
        self._visit(module.body, 1, len(self._lines))
        return [self._blocks[line] for line in sorted(self._blocks)]

    def _visit(self, body: list[ast.stmt], level: int, end: int) -> None:
        """Visit the definitions of a body that ends at line ``end``."""
        floor = -1
        for node in body:
            if not isinstance(node, _Definition):
                continue
            first = self._first_line(node, floor)
            last = node.end_lineno or node.lineno
            head_end = max(self._first_line(node.body[0], node.lineno - 1), node.lineno)
            start, signature, stop = (self._offsets[line] for line in (first, node.lineno - 1, head_end))
            repeat = _short("\n".join(self._lines[node.lineno - 1 : head_end]))
            self._blocks[first] = Block(start, max(stop, signature), "definition", level, node.name, repeat)
            if last < end:
                at = self._offsets[last]
                self._blocks[last] = Block(at, at, "definition", level)
            if isinstance(node, ast.ClassDef):
                self._visit(node.body, level + 1, last)
            floor = last - 1

    def _first_line(self, node: ast.stmt, floor: int) -> int:
        """The first line of a statement with its decorators and comments, counted from 0."""
        decorators = getattr(node, "decorator_list", [])
        first: int = min([node.lineno, *(decorator.lineno for decorator in decorators)]) - 1
        while first - 1 > floor and self._lines[first - 1].lstrip().startswith("#"):
            first -= 1
        return first


def _short(head: str) -> str:
    """The first lines of a definition for its parts to repeat: the whole head, or only its first line."""
    if head.count("\n") >= _LONGEST_HEAD or len(head) > _LONGEST:
        head = head.partition("\n")[0]
    return f"{head}\n" if len(head) <= _LONGEST else ""


class _Open(NamedTuple):
    """A definition that later lines may still belong to."""

    indent: int
    name: str
    holds: bool


def _by_looks(text: str, language: str) -> Iterator[Block]:
    """The definitions of a source file by the look of their first lines."""
    stack: list[_Open] = []
    attached = -1  # start of the comments directly above; -1 if there are none
    for at, line in lines_with_starts(text):
        found = _definition(line, language)
        if found and _stands_outside(stack, found.indent):
            while stack and stack[-1].indent >= found.indent:
                stack.pop()
            stack.append(found)
            start = at if attached < 0 else attached
            end = min(at + len(line) + 1, len(text))
            yield Block(start, end, "definition", len(stack), found.name, f"{line.rstrip()}\n")
            attached = -1
        elif not _ATTACHED.match(line[:_LONGEST]):
            attached = -1
        elif attached < 0:
            attached = at


def _definition(line: str, language: str) -> _Open | None:
    body = " ".join(line.split())  # folded, so that a pattern cannot try every way to split white space
    if not body or len(line) > _LONGEST:
        return None
    for pattern, holds in _patterns(language):
        if found := pattern.match(body):
            indent = len(line[: len(line) - len(line.lstrip())].expandtabs(4))
            return _Open(indent, found[1].strip(), holds)
    return None


@cache
def _patterns(language: str) -> tuple[tuple[re.Pattern[str], bool], ...]:
    holders, others = _LOOKS.get(language, ((), ()))
    looks = [(look, True) for look in holders] + [(look, False) for look in others]
    return tuple((re.compile(look), holds) for look, holds in looks)


def _stands_outside(stack: list[_Open], indent: int) -> bool:
    """Whether a definition at this indentation is outside of the functions above it."""
    outer = next((entry for entry in reversed(stack) if entry.indent < indent), None)
    return outer.holds if outer else indent == 0
