"""The rules of a ``.gitignore`` file, each as one regular expression that never searches twice.

A rule holds components (between slashes), and a component holds pieces (between stars). A piece has a fixed
number of characters, and what stands between two ``**`` a fixed number of components: the leftmost match
leaves most room for the rest. So each is looked for once, from left to right, in an atomic group ``(?>…)``.

The package pathspec is no dependency, and its expressions do search again: ``*a*a*a*a*a*a*a*a*a*ab`` against
a name of 40 letters took it 35 seconds, and anybody's ``.gitignore`` may be among the files to index.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dartboard.deadline import check
from dartboard.errors import IngestError

_LONGEST_PATH = 4096
"""No path is longer, so a rule that needs more characters matches none."""
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
    """Rules in their order, of which the last that matches counts."""

    def __init__(self, lines: Iterable[str], *, strict: bool = False) -> None:
        """``strict``: a rule that can match nothing raises ``IngestError``; otherwise it is passed over."""
        rules: list[_Rule] = []
        for line in lines:
            check()
            try:
                rule = _rule(line)
            except ValueError as error:
                if strict:
                    raise IngestError(f"the pattern {line!r} cannot be understood: {error}") from error
            else:
                if rule is not None:
                    rules.append(rule)
        self._rules = rules[::-1]

    def verdict(self, path: str, *, is_dir: bool) -> bool | None:
        """Whether a rule names this path: False for one with ``!``, None where no rule does."""
        return next((rule.named for rule in self._rules if rule.matches(path, is_dir)), None)

    def covers(self, path: str, *, is_dir: bool) -> bool:
        """Whether the rules name the path or, where they say nothing of it, the nearest folder above it."""
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
    """No slash within: the rule is about the last component of a path."""
    pattern: re.Pattern[str]

    def matches(self, path: str, is_dir: bool) -> bool:
        if self.dirs_only and not is_dir:
            return False
        return self.pattern.fullmatch(path.rpartition("/")[2] if self.name_only else path) is not None


def _rule(line: str) -> _Rule | None:
    """A line as a rule; None for one that is empty, a comment, or longer than any path."""
    text = line.rstrip(" ")
    if text != line and (len(text) - len(text.rstrip("\\"))) % 2:
        text += " "  # the last space is escaped
    if not text or text.startswith("#"):
        return None
    named = not text.startswith("!")
    text = text if named else text[1:]
    dirs_only = text.endswith("/")
    text = text[:-1] if dirs_only else text
    if not text:
        raise ValueError("it names nothing")
    name_only = "/" not in text
    components: list[list[str]] = [[]]
    for token in _tokens(text.removeprefix("/")):
        if token == _SLASH:
            components.append([])
        else:
            components[-1].append(token)
    if sum(token != _STAR for tokens in components for token in tokens) > _LONGEST_PATH:
        return None
    runs: list[list[str]] = [[]]  # between two runs of components there may be any others (``**``)
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
    # Behind a ``**`` at the end there is at least one component.
    return (f"{first}/" if first else "") + between + (_FOLDERS + last if last else "(?s:.+)")


def _component(tokens: Sequence[str]) -> str:
    """The expression of what stands between two slashes."""
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
    """Stars, slashes, and for each other character of a name the expression that it must match."""
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
                raise ValueError("it ends in a backslash")
            yield re.escape(text[at]) if text[at] != "/" else "/"
            at += 1
        else:
            yield re.escape(char)


def _bracket(text: str, at: int) -> tuple[str, int]:
    """The expression of the characters between brackets, and where the text goes on."""
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
                raise ValueError(f"there is no class of characters {name!r}")
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
    """The character here, or the one behind a backslash, and where the text goes on."""
    at += text[at] == "\\"
    if at == len(text):
        raise ValueError("a bracket is not closed")
    return text[at], at + 1
