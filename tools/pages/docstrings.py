"""Docstrings, written for a terminal, as the Markdown that the site renders.

Roles become links where the name has a place in the reference, and code elsewhere; literal blocks and
examples become fenced blocks; sections such as ``Args:`` become lists.
"""

import re
from textwrap import dedent
from typing import Any

import griffe

from tools.pages.rooms import homes

_ROLE = re.compile(r":(?:func|class|mod|meth|data|attr|exc|obj):`~?([^`]+)`")
_LITERAL = re.compile(r"^(?P<before>[^\n]*?)::\n\n(?P<block>(?:[ \t]+[^\n]*\n|\n)+)", flags=re.MULTILINE)
_EXAMPLE = re.compile(r"(?:^>>> [^\n]*\n?(?:^(?!>>>)\S[^\n]*\n?|^\.\.\. [^\n]*\n?)*)+", flags=re.MULTILINE)
_SECTION = re.compile(
    r"^(?P<title>Args|Attributes|Raises|Returns|Yields|Examples?):\n(?P<block>(?:[ \t]+[^\n]*\n|\n)+)",
    flags=re.MULTILINE,
)
_TITLES = {"Args": "Parameters"}
_LISTS = ("Args", "Attributes", "Raises")


def as_markdown(text: str) -> str:
    """A docstring as Markdown."""
    text = _SECTION.sub(_section, text + "\n")
    text = _LITERAL.sub(_fenced, text)
    text = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
    return _ROLE.sub(lambda found: _linked(found[1]), text).rstrip()


def plain_roles(text: str) -> str:
    """The text with every role as code."""
    return _ROLE.sub(lambda found: f"`{found[1].lstrip('.').removeprefix('dartboard.')}`", text)


def _linked(target: str) -> str:
    name = target.lstrip(".").rpartition(".")[2]
    shown = name if target.startswith("dartboard.") and name[:1].isupper() else target.lstrip(".")
    place = homes().get(name) if target in (name, homes().get(name)) else None
    return f"[`{shown}`][{place}]" if place else f"`{shown}`"


def _section(found: re.Match[str]) -> str:
    """A section with its title in bold; parameters, attributes and errors as a list."""
    title, block = found["title"], dedent(found["block"]).strip()
    if title in _LISTS:
        items = re.split(r"\n(?=\S)", block)
        block = "\n".join(f"- {_item(item)}" for item in items)
    return f"**{_TITLES.get(title, title)}**\n\n{block}\n\n"


def _item(text: str) -> str:
    """``name, other: what it is`` with the names as code."""
    names, colon, rest = text.partition(": ")
    if not colon:
        return text
    return ", ".join(f"`{name.strip()}`" for name in names.split(",")) + f": {rest}"


def _fenced(found: re.Match[str]) -> str:
    lines = found["block"].rstrip().split("\n")
    indent = min(len(line) - len(line.lstrip()) for line in lines if line.strip())
    block = "\n".join(line[indent:] for line in lines)
    before = f"{found['before']}:\n\n" if found["before"] else ""
    return f"{before}```text\n{block}\n```\n\n"


class Readable(griffe.Extension):
    """Rewrites every docstring as it is loaded."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """One object's docstring."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)
