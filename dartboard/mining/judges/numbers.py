"""Numbers in words and scales: "one hundred and five", "1.5 million", "twenty-first"."""

from collections.abc import Sequence
from decimal import Decimal

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
