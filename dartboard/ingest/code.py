"""Sections of source code: each function, each class head, each method, and the code between them.

Python is parsed. Decorators and the comments directly above belong to a definition, and a method's context is
the line of its class. Python that does not parse (another version, a template) and all other languages use
patterns: a small table has the look of a definition's first line for each family of languages. A definition
belongs to the nearest type, module or namespace above it with less indentation; code that is indented deeper
than a function is its body. We use no grammar: tree-sitter is not a dependency and needs a compiled package
per language, and chunking only needs to know where definitions begin.
"""

import ast
import re
import warnings
from dataclasses import dataclass, replace
from functools import cache

from dartboard.ingest.documents import Section
from dartboard.ingest.limits import MAX_HEADINGS
from dartboard.ingest.sections import lines_with_starts, until_next

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
_LONGEST_PARSED = 1_000_000
"""A parsed module takes a hundred times its size in memory; longer files are data."""
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def code_sections(text: str, language: str) -> tuple[Section, ...]:
    """The sections of a source file in a language of :func:`dartboard.ingest.readers.language_of`."""
    parse = language == "python" and len(text) <= _LONGEST_PARSED
    return (python_sections(text) if parse else None) or other_sections(text, language)


def python_sections(text: str) -> tuple[Section, ...] | None:
    """The sections of a module; None if it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about the parsed code
            module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return _Outline(text).sections(module)


class _Outline:
    def __init__(self, text: str) -> None:
        self._lines = text.split("\n")
        self._offsets = [0]
        for line in self._lines:
            self._offsets.append(self._offsets[-1] + len(line) + 1)
        self._offsets[-1] -= 1  # the last line has no line end
        self._starts: dict[int, tuple[tuple[str, ...], str]] = {}  # line (from 0) → path, context

    def sections(self, module: ast.Module) -> tuple[Section, ...]:
        """Sections in order; a later rule for the same line overrides an earlier one."""
        self._starts[0] = ((), "")
        self._visit(module.body, (), "", len(self._lines))
        found: list[Section] = []
        lines = sorted(self._starts)
        for first, last in zip(lines, [*lines[1:], len(self._lines)], strict=True):
            start, end = self._offsets[first], self._offsets[last]
            if found and not "".join(self._lines[first:last]).strip():
                found[-1] = replace(found[-1], end=end)
            elif end > start:
                found.append(Section(start, end, *self._starts[first]))
        return tuple(found)

    def _visit(self, body: list[ast.stmt], path: tuple[str, ...], context: str, end: int) -> None:
        """Visit the definitions of a body that ends at line ``end``; code after one belongs to the body."""
        floor = -1
        for node in body:
            if not isinstance(node, _Definition):
                continue
            first = self._first_line(node, floor)
            last = node.end_lineno or node.lineno
            self._starts[first] = ((*path, node.name), context)
            if last < end:
                self._starts[last] = (path, context)
            if isinstance(node, ast.ClassDef):
                self._visit(node.body, (*path, node.name), context + self._head(node), last)
            floor = last - 1

    def _first_line(self, node: _Definition, floor: int) -> int:
        """The first line of the definition with its decorators and comments, counted from 0."""
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        while first - 1 > floor and self._lines[first - 1].lstrip().startswith("#"):
            first -= 1
        return first

    def _head(self, node: ast.ClassDef) -> str:
        """``class Name(Base):``, possibly over several lines."""
        body = node.body[0]
        first = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", []))])
        return "\n".join(self._lines[node.lineno - 1 : max(first - 1, node.lineno)]) + "\n"


@dataclass(frozen=True, slots=True)
class _Open:
    """A definition that later lines may still belong to."""

    indent: int
    name: str
    holds: bool
    line: str


def other_sections(text: str, language: str) -> tuple[Section, ...]:
    """The sections of a source file; a file without recognised definitions is one section."""
    begun = [Section(0, 0)]
    stack: list[_Open] = []
    attached = -1  # start of the comments directly above; -1 if there are none
    for at, line in lines_with_starts(text):
        found = _definition(line, language) if len(begun) < MAX_HEADINGS else None
        if found and _stands_outside(stack, found.indent):
            while stack and stack[-1].indent >= found.indent:
                stack.pop()
            context = "".join(f"{outer.line}\n" for outer in stack)
            stack.append(found)
            start = at if attached < 0 else attached
            begun.append(Section(start, start, tuple(outer.name for outer in stack), context))
            attached = -1
        elif not _ATTACHED.match(line):
            attached = -1
        elif attached < 0:
            attached = at
    return until_next(begun, len(text))


def _definition(line: str, language: str) -> _Open | None:
    body = line.lstrip()
    if not body or len(line) > _LONGEST:
        return None
    for pattern, holds in _patterns(language):
        if found := pattern.match(body):
            indent = len(line[: len(line) - len(body)].expandtabs(4))
            return _Open(indent, found[1].strip(), holds, line.rstrip())
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
