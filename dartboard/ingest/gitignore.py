"""Rules of ``.gitignore`` files, each compiled to one regular expression without backtracking.

A rule consists of components (between slashes), and a component of pieces (between stars). A piece has a
fixed number of characters, and the part between two ``**`` a fixed number of components, so the leftmost
match leaves most room for the rest. Each piece is therefore matched once, left to right, in an atomic group
``(?>…)``.

The package pathspec is not a dependency, and its expressions backtrack: ``*a*a*a*a*a*a*a*a*a*ab`` against a
name of 40 letters took 35 seconds, and the files to index may contain anybody's ``.gitignore``.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dartboard.deadline import check
from dartboard.errors import IngestError

_LONGEST_PATH = 4096
"""Longest path; a rule that needs more characters matches nothing."""
_STAR, _SLASH = "*", "/"
_NOTHING = "(?!)"
_FOLDERS = "(?:[^/]++/)*"
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class IgnoreRules:
    """Rules in order; the last match wins."""

    def __init__(self, lines: Iterable[str], *, strict: bool = False) -> None:
        """``strict``: a rule that can match nothing raises ``IngestError``; otherwise it is skipped."""
        rules: list[_Rule] = []
        for line in lines:
            check()
            try:
                rule = _rule(line)
            except ValueError as error:
                if strict:
                    raise IngestError(f"the pattern {line!r} is not valid: {error}") from error
            else:
                if rule is not None:
                    rules.append(rule)
        self._rules = rules[::-1]

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Whether a rule matches this path: False for a rule with ``!``, None without a match."""
        return next((rule.named for rule in self._rules if rule.matches(path, is_dir)), None)

    def covers(self, path: str, *, is_dir: bool) -> bool:
        """Whether the rules match the path or, without a match, the nearest matching folder above it."""
        said = self.verdict(path, is_dir=is_dir)
        while said is None and "/" in path:
            path, is_dir = path.rpartition("/")[0], True
            said = self.verdict(path, is_dir=True)
        return bool(said)


@dataclass(frozen=True, slots=True)
class _Rule:
    named: bool
    """False for a rule with ``!``."""
    dirs_only: bool
    name_only: bool
    """No inner slash: the rule is matched against the last component of a path."""
    pattern: re.Pattern[str]

    def matches(self, path: str, is_dir: bool) -> bool:
        if self.dirs_only and not is_dir:
            return False
        return self.pattern.fullmatch(path.rpartition("/")[2] if self.name_only else path) is not None


def _rule(line: str) -> _Rule | None:
    """A line as a rule; None for an empty line, a comment, or a rule longer than any path."""
    text = line.rstrip(" ")
    if text != line and (len(text) - len(text.rstrip("\\"))) % 2:
        text += " "  # the trailing space is escaped
    if not text or text.startswith("#"):
        return None
    named = not text.startswith("!")
    text = text if named else text[1:]
    dirs_only = text.endswith("/")
    text = text[:-1] if dirs_only else text
    if not text:
        raise ValueError("it is empty")
    name_only = "/" not in text
    components: list[list[str]] = [[]]
    for token in _tokens(text.removeprefix("/")):
        if token == _SLASH:
            components.append([])
        else:
            components[-1].append(token)
    if sum(token != _STAR for tokens in components for token in tokens) > _LONGEST_PATH:
        return None
    runs: list[list[str]] = [[]]  # runs of components, separated by ``**``
    for tokens in components:
        if len(tokens) > 1 and set(tokens) == {_STAR} and not name_only:
            runs.append([])
        else:
            runs[-1].append(_component(tokens))
    return _Rule(named, dirs_only, name_only, re.compile(_path(runs)))


def _path(runs: Sequence[Sequence[str]]) -> str:
    """The expression of a whole rule."""
    first, *middle = ["/".join(run) for run in runs]
    if not middle:
        return first
    last = middle.pop()
    between = "".join(f"(?>{_FOLDERS}?{run}/)" for run in middle if run)
    # A ``**`` at the end requires at least one more component.
    return (f"{first}/" if first else "") + between + (_FOLDERS + last if last else "(?s:.+)")


def _component(tokens: Sequence[str]) -> str:
    """The expression for one component."""
    pieces = [""]
    for token in tokens:
        if token != _STAR:
            pieces[-1] += token
        elif pieces[-1] or len(pieces) == 1:
            pieces.append("")
    first, *middle = pieces
    if not middle:
        return first or _NOTHING
    last = middle.pop()
    between = "".join(f"(?>[^/]*?{piece})" for piece in middle)
    return f"{first}{between}[^/]*{last}"


def _tokens(text: str) -> Iterator[str]:
    """Stars, slashes, and for every other character the expression that matches it."""
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char in "*/":
            yield char
        elif char == "?":
            yield "[^/]"
        elif char == "[":
            token, at = _bracket(text, at)
            yield token
        elif char == "\\":
            if at == len(text):
                raise ValueError("it ends with a backslash")
            yield re.escape(text[at]) if text[at] != "/" else "/"
            at += 1
        else:
            yield re.escape(char)


def _bracket(text: str, at: int) -> tuple[str, int]:
    """The expression of a bracket, and the position behind it."""
    negated = text[at : at + 1] in ("!", "^") and at < len(text)
    at += negated
    start, before, members = at, "", ""
    while at == start or text[at : at + 1] != "]":
        end = text.find("]", at + 1)
        if end < 0:
            raise ValueError("a bracket is not closed")
        if text.startswith("[:", at) and text.endswith(":", at + 2, end):
            name = text[at + 2 : end - 1]
            if name not in _CLASSES:
                raise ValueError(f"unknown character class {name!r}")
            members, before, at = members + _CLASSES[name], "", end + 1
        elif text[at] == "-" and before and text[at + 1] != "]":
            last, at = _escaped(text, at + 1)
            if before <= last:
                members += f"{re.escape(before)}-{re.escape(last)}"
            before = ""
        else:
            before, at = _escaped(text, at)
            members += re.escape(before)
    at += 1
    if not members:
        return ("[^/]" if negated else _NOTHING), at
    return f"(?!/)[{'^' if negated else ''}{members}]", at


def _escaped(text: str, at: int) -> tuple[str, int]:
    """The character here, or the escaped one after a backslash, and the position behind it."""
    at += text[at] == "\\"
    if at == len(text):
        raise ValueError("a bracket is not closed")
    return text[at], at + 1
