"""Days in their usual spellings: March 5, 2021 = 5th of March 2021 = 2021-03-05, and the days of a range."""

from typing import NamedTuple

_NAMES = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MONTHS = {name: number for number, name in enumerate(_NAMES, start=1)} | {
    name[:3]: number for number, name in enumerate(_NAMES, start=1)
}
MONTHS["sept"] = 9


class Day(NamedTuple):
    """A day, or a month of a year, or a day of any year: what was not said is None."""

    year: int | None
    month: int
    day: int | None

    def says(self, wanted: "Day") -> bool:
        """Whether this names everything that ``wanted`` names."""
        return (
            self.month == wanted.month and wanted.day in (None, self.day) and wanted.year in (None, self.year)
        )


Readings = tuple[Day, ...]


def numeric(first: str, second: str, third: str) -> Readings:
    """The days that ``2021-03-05`` or ``03/05/2021`` can mean; none where it is no date."""
    if len(first) == 4:
        return _valid((int(first), int(second), int(third)))
    year = int(third)
    both = _valid((year, int(first), int(second))) + _valid((year, int(second), int(first)))
    return tuple(dict.fromkeys(both))


def is_day(value: int) -> bool:
    """Whether a number can be a day of a month."""
    return 1 <= value <= 31


def is_year(value: int) -> bool:
    """Whether a number beside a month is taken for a year."""
    return 1000 <= value <= 2999


def _valid(parts: tuple[int, int, int]) -> Readings:
    year, month, day = parts
    return (Day(year, month, day),) if 1 <= month <= 12 and is_day(day) else ()
