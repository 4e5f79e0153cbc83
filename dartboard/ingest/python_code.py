"""Python source in sections: each function, each class's head, each method, and what stands between.

Decorators and the comment lines right above belong to a definition. A method's context is the line of its
class. Source that does not parse (another version, a template) is split by its look instead; see
:mod:`dartboard.ingest.other_code`.
"""

import ast
import warnings
from dataclasses import replace

from dartboard.ingest.documents import Section

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def python_sections(text: str) -> tuple[Section, ...] | None:
    """The sections of a module, or None where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the code that is read, not about this program
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
        self._offsets[-1] -= 1  # the last line has no end of line
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
        """Definitions of a body that lasts to line ``end``; what follows one belongs to the body again."""
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
        """Of the definition with its decorators and the comments right above, counted from 0."""
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        while first - 1 > floor and self._lines[first - 1].lstrip().startswith("#"):
            first -= 1
        return first

    def _head(self, node: ast.ClassDef) -> str:
        """``class Name(Base):``, over several lines if it is written so."""
        body = node.body[0]
        first = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", []))])
        return "\n".join(self._lines[node.lineno - 1 : max(first - 1, node.lineno)]) + "\n"
