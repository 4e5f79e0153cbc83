"""Does an answer hold the known answer: as strings are compared elsewhere, without citations."""

import pytest

from dartboard.answering.accuracy import cases_of, holds_answer
from dartboard.mining.cases import Case
from tests.evaluation.data import clustered


def case(*answers, facets=()):
    return Case(id="1", question="?", answers=answers, facets=facets)


@pytest.mark.parametrize(
    ("text", "answers", "right"),
    [
        ("It was Tampa [1].", ["Tampa"], True),
        ("It was TAMPA, Florida [1].", ["tampa"], True),
        ("It was Tampax [1].", ["Tampa"], False),
        ("On January 2, 2022 [1].", ["January 2, 2022"], True),
        ("Some say Jan 2 [1].", ["nothing", "Jan 2"], True),
        ("Three teams [2].", ["2"], False),
        ("Two teams, that is 2 [1].", ["2"], True),
        ("The passages do not answer this question. They name Tampa [1].", ["Tampa"], False),
        ("Yes, both are [1].", ["yes"], True),
        ("**No**: they differ [1].", ["no"], True),
        ("There is no doubt: yes [1].", ["no"], False),
        ("They are the same [1].", ["yes"], False),
        ("", ["yes"], False),
        ("", ["Tampa"], False),
    ],
)
def test_strings(text, answers, right):
    assert holds_answer(text, case(*answers)) is right


def test_every_part_is_needed():
    both = case(facets=(("January 2", "Jan 2"), ("Frank",)))
    assert holds_answer("Frank did, on Jan. 2 [1].", both)
    assert not holds_answer("Frank did [1].", both)


def test_cases_of_a_data_set():
    data = clustered(queries=4)
    data.metadata["answers"] = {"q00": ["one"], "q01": ["a", "b"], "q02": [" "]}
    data.metadata["answer_parts"] = {"q01": [["a"], ["b"]]}
    found = cases_of(data)
    assert list(found) == ["q00", "q01"]
    assert (found["q00"].question, found["q00"].answers) == ("question 0", ("one",))
    assert found["q01"].facets == (("a",), ("b",))
