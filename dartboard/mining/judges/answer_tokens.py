"""A text as a row of comparable tokens: words, numbers and days, each with its place in the text.

``1,000``, ``1000`` and ``one thousand`` are one number; ``$5 million`` and ``5,000,000 dollars`` one number
and one unit; ``March 5, 2021`` and ``2021-03-05`` one day. Words have neither case nor accents, ``U.S.`` is
``us``, a final ``'s`` is dropped, and a hyphen parts words that may also be written as one.

Ours, and not quantulum3, pint or dateparser: these would be three dependencies for one comparison, guess
where a text is ambiguous, and do not say where in the text they found something, which evidence needs. How
well it does is fixed by the cases of tests/mining/test_answers.py.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from dartboard.mining.judges.dates import Day, Token, as_one, numeric, with_days
from dartboard.mining.judges.text_folding import Folded, fold

_UNITS = {
    "percent": ("percent", "pct", "percents"),
    "dollar": ("dollar", "dollars", "usd"),
    "euro": ("euro", "euros", "eur"),
    "pound": ("pound", "pounds", "gbp"),
    "kilometre": ("km", "kms", "kilometre", "kilometres", "kilometer", "kilometers"),
    "metre": ("m", "metre", "metres", "meter", "meters"),
    "centimetre": ("cm", "centimetre", "centimetres", "centimeter", "centimeters"),
    "millimetre": ("mm", "millimetre", "millimetres", "millimeter", "millimeters"),
    "mile": ("mi", "mile", "miles"),
    "foot": ("ft", "foot", "feet"),
    "kilogram": ("kg", "kgs", "kilogram", "kilograms"),
    "gram": ("g", "gram", "grams"),
    "hour": ("h", "hr", "hrs", "hour", "hours"),
    "minute": ("min", "mins", "minute", "minutes"),
    "second": ("s", "sec", "secs", "second", "seconds"),
    "millisecond": ("ms", "millisecond", "milliseconds"),
}
UNIT_OF = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings}
CURRENCY = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"} | {
    code: UNIT_OF[code] for code in ("usd", "eur", "gbp")
}
SHORT_SCALES = {"k": 10**3, "m": 10**6, "b": 10**9, "t": 10**12}


_SMALL = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

UNITS = {word: value for value, word in enumerate(_SMALL)} | {
    word: 10 * value for value, word in enumerate(_TENS, start=2)
}
SCALES = {
    "hundred": 10**2,
    "thousand": 10**3,
    "million": 10**6,
    "mn": 10**6,
    "billion": 10**9,
    "bn": 10**9,
    "trillion": 10**12,
    "tn": 10**12,
}
_IRREGULAR = {
    "first": 1,
    "second": 2,
    "third": 3,
    "fifth": 5,
    "eighth": 8,
    "ninth": 9,
    "twelfth": 12,
}
ORDINALS = (
    {f"{word}th": value for word, value in UNITS.items() if value > 3 and not word.endswith("y")}
    | {f"{word[:-1]}ieth": value for word, value in UNITS.items() if word.endswith("y")}
    | _IRREGULAR
)


def spelled(words: Sequence[str]) -> tuple[Decimal, int] | None:
    """The number that ``words`` begin with, and how many of them it takes; "and" joins after a hundred."""
    total = current = 0
    taken = 0
    for place, word in enumerate(words):
        if word in UNITS:
            value = UNITS[word]
            if place and current % 100 and not (current % 10 == 0 and 0 < value < 10 and current % 100 >= 20):
                break
            current += value
        elif word in SCALES and (taken or word not in ("mn", "bn", "tn")):
            if not taken:
                break
            scale = SCALES[word]
            if scale == 100:
                current = max(current, 1) * 100
            else:
                total, current = total + max(current, 1) * scale, 0
        elif word == "and" and taken and words[place - 1] in SCALES and _goes_on(words, place + 1):
            continue
        else:
            break
        taken = place + 1
    return (Decimal(total + current), taken) if taken else None


def ordinal(value: int) -> str:
    """``21`` → ``"21st"``."""
    if value % 100 in (11, 12, 13):
        return f"{value}th"
    return f"{value}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(value % 10, 'th') }"


def _goes_on(words: Sequence[str], place: int) -> bool:
    return place < len(words) and words[place] in UNITS


ARTICLES = frozenset({"a", "an", "the"})
_BREAK = re.compile(r"[;:!?()\[\]{}<>=|\n]")

_SCAN = re.compile(
    r"""
      (?P<date>(?<![\w-])(?:\d{4}-\d{1,2}-\d{1,2}|\d{4}/\d{1,2}/\d{1,2}|\d{1,2}/\d{1,2}/\d{4})(?=t\d|[^\w/-]|$))
    | (?P<acronym>(?<![\w.])(?:[a-z]\.(?:\s?[a-z]\.)+(?!\w)|[a-z](?:\.[a-z])+(?!\w)))
    | (?<![\w.])(?P<money>(?:us)?[$€£¥₹]\s?|(?:usd|eur|gbp)\s?)?
      (?P<number>(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)*|\.\d+(?!\.\d)))
      (?P<suffix>\s?%|\s?per\ cent\b|[a-z]{1,4}(?![\w]))?(?!\w)
    | (?P<word>\w+(?:'\w+)*(?:\+\+|\#)?)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text's tokens in order, the folded text that they stand in, and where each value is found.

    In ``places`` all days stand under the key ``Day``, and words that a hyphen ties also as one word.
    """

    folded: Folded
    tokens: tuple[Token, ...]
    places: dict[object, list[int]]


@lru_cache(maxsize=512)
def tokenize(text: str) -> TokenizedText:
    """The text, taken apart; texts come back often, so the last few hundred are kept."""
    folded = fold(text)
    found = tuple(with_days(_with_numbers(_scan(folded.text))))
    places: dict[object, list[int]] = {}
    for at, token in enumerate(found):
        places.setdefault(Day if isinstance(token.value, tuple) else token.value, []).append(at)
        if token.glued and (both := as_one(*found[at : at + 2])):
            places.setdefault(both, []).append(at)
    return TokenizedText(folded, found, places)


def _scan(text: str) -> list[Token]:
    found: list[Token] = []
    for match in _SCAN.finditer(text):
        start, end = match.span()
        if match["date"] and (days := numeric(*re.split(r"[-/]", match["date"]))):
            found.append(Token(days, start, end))
        elif match["acronym"]:
            found.append(Token(re.sub(r"[^a-z]", "", match["acronym"]), start, end))
        elif match["number"]:
            found += _number(match, text)
        elif match["word"]:
            found.append(Token(_word(match["word"]), start, end))
    return [
        token._replace(joint=joint)
        if after.start > token.end and (joint := _joint(text[token.end : after.start])) != " "
        else token
        for token, after in zip(found, [*found[1:], Token("", len(text), len(text))], strict=False)
    ]


def _joint(between: str) -> str:
    if between in (" ", "-"):
        return between
    if _BREAK.search(between):
        return "|"
    return "," if "," in between else " "


def _word(word: str) -> str:
    return word.removesuffix("'s").replace("'", "") or word


def _number(match: re.Match[str], text: str) -> list[Token]:
    """The number and its unit; ``5th`` and ``3d`` are words, ``1.20.0`` too."""
    digits, suffix = match["number"], (match["suffix"] or "").strip()
    digits = f"0{digits}" if digits.startswith(".") else digits
    start, end = match.start("number"), match.end()
    money = (match["money"] or "").strip().removeprefix("us$") or "$" if match["money"] else ""
    if digits.count(".") > 1:
        return [Token(digits + suffix, start, end)]
    value = Decimal(digits.replace(",", ""))
    if money and suffix in SHORT_SCALES:
        value, suffix = value * SHORT_SCALES[suffix], ""
    elif suffix in ("bn", "mn", "tn"):
        value, suffix = value * SCALES[suffix], ""
    unit = "percent" if suffix in ("%", "per cent") else UNIT_OF.get(suffix, "")
    if suffix and not unit:
        return [Token(digits.replace(",", "") + suffix, start, end)]
    if _negative(text, match.start()):
        value = -value
    number = Token(_exact(value), match.start(), end)
    named = unit or CURRENCY.get(money, "")
    return [number, Token(named, match.start(), end)] if named else [number]


def _negative(text: str, start: int) -> bool:
    """A minus before a number, not a hyphen or a range."""
    return text[start - 1 : start] == "-" and (start == 1 or text[start - 2] in " \t\n([{=:,<>")


def _exact(value: Decimal) -> Decimal:
    """One Decimal for equal numbers, so that 1.50 is 1.5."""
    return value.normalize() if value else Decimal(0)


def _with_numbers(scanned: list[Token]) -> list[Token]:
    """Spelled numbers, scales after digits, ordinals, and one spelling of a unit after a number."""
    found: list[Token] = []
    words = [token.value if isinstance(token.value, str) else "" for token in scanned]
    place = 0
    while place < len(scanned):
        token, word, taken = scanned[place], words[place], 1
        if isinstance(token.value, Decimal):
            following = _after_unit(scanned, place)
            if following < len(words) and words[following] in SCALES:
                end = scanned[following].end
                token = token._replace(value=_exact(token.value * SCALES[words[following]]), end=end)
                found.append(token)
                found += [unit._replace(end=end) for unit in scanned[place + 1 : following]]
                place = following + 1
                continue
        elif word in UNITS and (number := spelled(_run(scanned, words, place))):
            token, taken = _spelled(scanned, words, place, number)
        elif word in ("a", "an") and place + 1 < len(words) and words[place + 1] in SCALES:
            value = Decimal(SCALES[words[place + 1]])
            token, taken = token._replace(value=_exact(value), end=scanned[place + 1].end), 2
        elif word in ORDINALS:
            token = token._replace(value=ordinal(ORDINALS[word]))
        elif word in UNIT_OF and found and isinstance(found[-1].value, Decimal):
            token = token._replace(value=UNIT_OF[word])
        found.append(token)
        place += taken
    return found


def _run(scanned: list[Token], words: list[str], place: int) -> list[str]:
    """The words from ``place`` on that nothing but spaces and hyphens parts."""
    end = place + 1
    while end < len(words) and end < place + 24 and scanned[end - 1].joint in " -":
        end += 1
    return words[place:end]


def _after_unit(scanned: list[Token], place: int) -> int:
    """The token after a number and the currency that was written before it."""
    following = place + 1
    if following < len(scanned) and scanned[following].end == scanned[place].end:
        following += 1
    return following


def _spelled(
    scanned: list[Token], words: list[str], place: int, number: tuple[Decimal, int]
) -> tuple[Token, int]:
    value, taken = number
    last = place + taken
    if last < len(words) and words[last] in ORDINALS and value % 100 >= 20 and value % 10 == 0:
        whole = ordinal(int(value) + ORDINALS[words[last]])
        return scanned[last]._replace(value=whole, start=scanned[place].start), taken + 1
    return scanned[last - 1]._replace(value=_exact(value), start=scanned[place].start), taken
