"""The rules of a ``.gitignore`` file, in time that grows with the length of rule and path only.

A rule holds components (between slashes), and a component holds pieces (between stars). A piece has a fixed
number of characters, and what stands between two ``**`` a fixed number of components: the leftmost match
leaves most room for the rest. So each is looked for once, from left to right, and never again.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dartboard.errors import IngestError

_LONGEST_PATH = 4096
"""No path is longer, so a rule that needs more characters matches none."""
_STAR, _SLASH = "*", "/"
_NOTHING = "(?!)"
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
        parts = path.split("/")
        return next((rule.named for rule in self._rules if rule.matches(parts, is_dir)), None)

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
    dirs_only: bool
    anywhere: bool
    """No slash within: the rule is one component, that of the name."""
    runs: tuple[tuple[re.Pattern[str], ...], ...]
    """Runs of components; between two of them any number of others (``**``)."""
    length: int
    """Components in all runs."""

    def matches(self, parts: Sequence[str], is_dir: bool) -> bool:
        if self.dirs_only and not is_dir:
            return False
        if self.anywhere:
            return _run_at(self.runs[0], parts, len(parts) - 1)
        first, *middle = self.runs
        if not middle:
            return len(parts) == self.length and _run_at(first, parts, 0)
        last = middle.pop()
        end = len(parts) - max(len(last), 1)  # behind a ``**`` at the end there is at least one component
        if self.length > len(parts) or not _run_at(first, parts, 0):
            return False
        at = len(first)
        for run in middle:
            found = (start for start in range(at, end - len(run) + 1) if _run_at(run, parts, start))
            start = next(found, None)
            if start is None:
                return False
            at = start + len(run)
        return at <= end and _run_at(last, parts, end)


def _run_at(run: Sequence[re.Pattern[str]], parts: Sequence[str], at: int) -> bool:
    return all(component.fullmatch(parts[at + i]) for i, component in enumerate(run))


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
    anywhere = "/" not in text
    components = _components(_tokens(text.removeprefix("/")))
    if sum(token != _STAR for tokens in components for token in tokens) > _LONGEST_PATH:
        return None
    runs: list[list[re.Pattern[str]]] = [[]]
    for tokens in components:
        if len(tokens) > 1 and set(tokens) == {_STAR} and not anywhere:
            runs.append([])
            continue
        runs[-1].append(_component(tokens))
    kept = [run for i, run in enumerate(runs) if run or i in (0, len(runs) - 1)]
    return _Rule(named, dirs_only, anywhere, tuple(map(tuple, kept)), sum(map(len, kept)))


def _components(tokens: Iterable[str]) -> list[list[str]]:
    components: list[list[str]] = [[]]
    for token in tokens:
        if token == _SLASH:
            components.append([])
        else:
            components[-1].append(token)
    return components


def _component(tokens: Sequence[str]) -> re.Pattern[str]:
    """A regular expression that is decided piece by piece: ``(?>…)`` is not looked at again."""
    pieces = [""]
    for token in tokens:
        if token != _STAR:
            pieces[-1] += token
        elif pieces[-1] or len(pieces) == 1:
            pieces.append("")
    first, *middle = pieces
    if not middle:
        return re.compile(first or _NOTHING, re.DOTALL)
    last = middle.pop()
    between = "".join(f"(?>.*?{piece})" for piece in middle)
    return re.compile(f"{first}{between}.*{last}", re.DOTALL)


def _tokens(text: str) -> Iterator[str]:
    """Stars, slashes, and for each other character of a name the expression that it must match."""
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char in "*/":
            yield char
        elif char == "?":
            yield "."
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
        return ("." if negated else _NOTHING), at
    return f"[{'^' if negated else ''}{members}]", at


def _escaped(text: str, at: int) -> tuple[str, int]:
    """The character here, or the one behind a backslash, and where the text goes on."""
    at += text[at] == "\\"
    if at == len(text):
        raise ValueError("a bracket is not closed")
    return text[at], at + 1
