"""Parser of the filter language: text such as ``year >= 2020 and lang = "en"`` to a filter.

A hand-written recursive descent parser: the grammar has ten rules, and errors name the character position.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dartboard.errors import InvalidInputError
from dartboard.stores.filters import (
    DEEPEST,
    OPERATORS,
    And,
    Exists,
    Filter,
    Not,
    Or,
    Value,
    check_filter,
    comparison,
)

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
    | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<quoted>`[^`]+`)
    | (?P<word>[^\W\d][\w.-]*)
    | (?P<sign><=|>=|!=|==|[=<>(),\[\]])
    )""",
    re.VERBOSE,
)
LONGEST_TEXT = 1_000_000
"""Maximum length of a filter in characters."""
_LONGEST_NUMBER = 1000
_ESCAPED = re.compile(r"\\(.)")
_WORDS = ("and", "or", "not", "in", "exists", "true", "false")


def parse_filter(text: str) -> Filter:
    """Parse a filter from text.

    Args:
        text: Comparisons (``=  !=  <  <=  >  >=  in  exists``) joined by ``and``, ``or``, ``not`` and
            brackets; other field names than plain words go in backquotes.

    Raises:
        InvalidInputError: the text is not a filter (with the position), or the filter is too large.

    Example:
        >>> parse_filter('year >= 2020 and lang = "en"')
        And(parts=(Compare(field='year', operator='>=', value=2020), Equal(field='lang', value='en')))
    """
    if not isinstance(text, str) or not text.strip():
        raise InvalidInputError('filter is empty: write for example  year >= 2020 and lang = "en"')
    if len(text) > LONGEST_TEXT:
        raise InvalidInputError(
            f"filter: {len(text):,} characters are more than the {LONGEST_TEXT:,} allowed: ask for several "
            "values of one field with in […], or search in parts"
        )
    return _Parser(text).parse()


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _Parser:
    """Recursive descent: ``or`` binds weakest, then ``and``, then ``not``."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = len(text.rstrip())
        self._tokens = self._split()
        self._here = next(self._tokens, None)
        self._depth = 0

    def _split(self) -> Iterator[_Token]:
        position, end = 0, self._end
        while position < end:
            found = _TOKEN.match(self._text, position)
            if found is None or found.lastgroup is None:
                raise self._error("cannot read", end - len(self._text[position:end].lstrip()))
            kind = found.lastgroup
            word = found.group(kind)
            if kind == "word" and word.lower() in _WORDS:
                kind, word = "keyword", word.lower()
            yield _Token(kind, word, found.start(found.lastgroup))
            position = found.end()

    def parse(self) -> Filter:
        """The whole text as one filter."""
        where = self._either()
        if self._here is not None:
            raise self._error("expected and, or, or the end", self._here.start)
        check_filter(where)
        return where

    def _either(self) -> Filter:
        parts = [self._both()]
        while self._take("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Filter:
        parts = [self._one()]
        while self._take("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _one(self) -> Filter:
        self._depth += 1
        if self._depth > DEEPEST:
            raise InvalidInputError(f"filter is nested more than {DEEPEST} deep")
        try:
            if self._take("not"):
                return Not(self._one())
            if self._take("("):
                inside = self._either()
                self._need(")")
                return inside
            return self._compare()
        finally:
            self._depth -= 1

    def _compare(self) -> Filter:
        token = self._next("a field")
        if token.kind not in ("word", "quoted"):
            raise self._error("expected a field (in backquotes if it is not a plain word)", token.start)
        field = token.text.strip("`")
        operator = self._next("an operator")
        if operator.text not in (*OPERATORS, "=="):
            raise self._error(f"expected one of {', '.join(OPERATORS)}", operator.start)
        if operator.text == "exists":
            return Exists(field)
        value = self._values() if operator.text == "in" else self._value()
        return comparison(field, operator.text, value)

    def _values(self) -> list[Value]:
        opening = self._next("a list")
        closing = {"[": "]", "(": ")"}.get(opening.text)
        if closing is None:
            raise self._error("expected a list such as [1, 2]", opening.start)
        values: list[Value] = []
        while not self._take(closing):
            if values:
                self._need(",")
            values.append(self._value())
        return values

    def _value(self) -> Value:
        token = self._next("a value")
        if token.kind == "text":
            return _ESCAPED.sub(r"\1", token.text[1:-1])
        if token.kind == "number":
            if len(token.text) > _LONGEST_NUMBER:
                raise self._error("the number has too many digits", token.start)
            plain = token.text.lstrip("-").isdigit()
            return int(token.text) if plain else float(token.text)
        if token.text in ("true", "false"):
            return token.text == "true"
        raise self._error('expected a value: "text" in quotes, a number, true or false', token.start)

    def _next(self, wanted: str) -> _Token:
        here = self._here
        if here is None:
            raise self._error(f"expected {wanted}", self._end)
        self._here = next(self._tokens, None)
        return here

    def _take(self, text: str) -> bool:
        here = self._here
        if here is None or here.text != text or here.kind not in ("keyword", "sign"):
            return False
        self._here = next(self._tokens, None)
        return True

    def _need(self, text: str) -> None:
        if not self._take(text):
            raise self._error(f"expected {text}", self._end if self._here is None else self._here.start)

    def _error(self, problem: str, position: int) -> InvalidInputError:
        rest, whole = self._text[position : position + 20], self._text.strip()[:200]
        if not rest.strip():
            return InvalidInputError(f"filter: {problem} at the end (of {whole!r})")
        return InvalidInputError(
            f"filter: {problem} at character {position + 1} (near {rest!r} in {whole!r})"
        )
