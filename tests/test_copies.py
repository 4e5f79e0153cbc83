"""Which copy is shown, and how copies differ."""

from datetime import date

import pytest

from dartboard.copies import differences, preference
from dartboard.near_duplicates import are_alike, near_duplicates

TERMS = (
    "The monthly fee of the basic plan is 5 euros for every user, and it is billed at the end of the month "
    "since the year 2024 in all countries of the union."
)


@pytest.mark.parametrize(
    "rising",
    [
        [None, "29.9", "29.10-beta", "29.10", "29.10.1"],
        [None, "v1.2", "v1.10", "v2"],
        [None, "2024-12-31", "2025-01-02T09:00:00Z", "2025-01-02T10:00:00Z"],
        [None, date(2024, 12, 31), date(2025, 1, 1)],
        [None, -1, 0.25, 3, 10],
        [float("nan"), 10**400],
        [None, "1.9", "v2.0"],
    ],
)
def test_newer_and_larger_values_are_preferred(rising):
    assert preference(rising).tolist() == sorted(preference(rising[::-1]).tolist())
    assert len(set(preference(rising).tolist())) == len(rising)


def test_numbers_that_differ_are_named():
    other = TERMS.replace("2024", "2025").replace(" 5 ", " 6 ")
    assert are_alike(TERMS, other) and near_duplicates([TERMS, other]).tolist() == [0, 1]
    assert differences(TERMS, other) == [("5", "6"), ("2024", "2025")]
    assert differences(TERMS, TERMS.replace("basic", "Premium")) == [("basic", "Premium")]
    assert differences(TERMS, TERMS) == []
    moved = TERMS.replace("the year 2024 in", "long ago in").replace("The monthly", "Since 2019, the monthly")
    assert differences(TERMS, moved) == [("2024", "2019")]
    assert not are_alike(TERMS, "Something else entirely, about bridges and rivers.")
