"""Checks a program against the interface of google-adk by reading it: nothing is imported, nothing runs.

``interface.json`` beside this file lists what the package offers: every name that can be imported, and for
each class and function its parameters, as ``a, b=, *, c, d=`` (``=`` marks what may be left out, ``**``
that anything is taken). :func:`read` fails with an AssertionError when the program imports a name that is
not there, or calls one of the package's own with arguments that it does not take.
"""

import ast
import json
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass
class Call:
    """A call of something that the package defines."""

    fqn: str
    node: ast.Call

    @property
    def keywords(self) -> dict:
        """Arguments given by name."""
        return {keyword.arg: keyword.value for keyword in self.node.keywords if keyword.arg}


@dataclass
class Program:
    """A program that keeps to the interface."""

    tree: ast.Module
    calls: list

    def all(self, fqn: str) -> list:
        """The calls of a class or function, in the order of the program."""
        return [call for call in self.calls if call.fqn == fqn]

    def one(self, fqn: str) -> Call:
        """The only call of it."""
        found = self.all(fqn)
        assert len(found) == 1, f"expected one call of {fqn}, found {len(found)}"
        return found[0]

    def awaited(self, method: str) -> list:
        """The calls of a method of that name; each must be awaited."""
        waits = {id(node.value) for node in ast.walk(self.tree) if isinstance(node, ast.Await)}
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == method
        ]
        for node in found:
            assert id(node) in waits, f"line {node.lineno}: {method}() must be awaited"
        return found


def read(name: str = "solution.py") -> Program:
    """The program, checked."""
    tree = ast.parse((HERE / name).read_text(encoding="utf-8"))
    known = json.loads((HERE / "interface.json").read_text(encoding="utf-8"))
    meaning = dict(_imports(tree, known))
    calls = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (fqn := _resolve(_dotted(node.func), meaning, known)):
            _check_arguments(fqn, known["signatures"][fqn], node)
            calls.append(Call(fqn, node))
    return Program(tree, sorted(calls, key=lambda call: (call.node.lineno, call.node.col_offset)))


def _imports(tree, known):
    package = known["package"]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[:2] == package.split("."):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                assert _exists(full, known), f"line {node.lineno}: {package} has no {full}"
                yield alias.asname or alias.name, full
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[:2] == package.split("."):
                    assert _exists(alias.name, known), f"line {node.lineno}: no module {alias.name}"
                    yield alias.asname or alias.name.split(".")[0], alias.name if alias.asname else "google"


def _exists(full, known):
    """Listed, or in a part of the package that is not."""
    inside = full.removeprefix(known["package"] + ".").split(".")
    unlisted = len(inside) > 1 and inside[0] not in known["parts"]
    return unlisted or any(full in known[kind] for kind in ("names", "modules", "signatures"))


def _resolve(written, meaning, known):
    """The definition that a dotted name leads to, or nothing."""
    first, _, rest = written.partition(".")
    full = ".".join(filter(None, [meaning.get(first, ""), rest]))
    full = known["names"].get(full, full)
    return full if first in meaning and full in known["signatures"] else ""


def _dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _check_arguments(fqn, signature, node):
    """Every argument has a parameter, and every parameter that needs an argument has one."""
    parts = [part for part in signature.replace(" ", "").split(",") if part]
    place = parts.index("*") if "*" in parts else len(parts)
    plain = [part.rstrip("=") for part in parts[:place] if part != "**"]
    names = {part.rstrip("=") for part in parts} - {"*", "**"}
    where = f"line {node.lineno}: {fqn}"
    spread = any(isinstance(arg, ast.Starred) for arg in node.args)
    assert spread or len(node.args) <= len(plain), f"{where} takes {len(plain)} arguments by position"
    given = set(plain[: len(node.args)])
    for keyword in node.keywords:
        if keyword.arg is None:
            return
        assert keyword.arg in names or "**" in parts, f"{where} has no parameter {keyword.arg!r}"
        assert keyword.arg not in given, f"{where} gets {keyword.arg!r} twice"
        given.add(keyword.arg)
    needed = {part for part in parts if part[-1] not in "=*"}
    assert spread or needed <= given, f"{where} needs {', '.join(sorted(needed - given))}"
