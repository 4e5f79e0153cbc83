"""Near-copies by their words: against sets in plain Python, on edits, and in a selection."""

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dartboard.datasets.edits import EDITS
from dartboard.errors import InvalidInputError
from dartboard.selection import from_embeddings, select, select_many, wording
from dartboard.selection.telling import TELLING
from tests.selection.test_bandwidth import topics, with_copies

pytestmark = pytest.mark.usefixtures("engine")

PASSAGE = (
    "The bridge at Severin was opened in 1927 by the mayor. It is known as the longest wooden bridge of the "
    "county, although several others are older. During the flood it was closed for repairs, and traffic "
    "used the ferry at Oldham instead. It carries about 4,000 vehicles between the two banks every day."
)


UNSPACED = "\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff"


def plain_names(text: str) -> set[str]:
    """What begins with a capital after a word or a comma."""
    following = re.findall(rf"(?:(?<=[^\W_] )|(?<=, ))[^\W_{UNSPACED}]+", text)
    return {word.lower() for word in following if word[0].isupper()}


def plain_words(text: str, known: set[str]) -> tuple[Counter[str], Counter[str]]:
    """Words and names as the module's text defines them, and how often each has to stand in a copy."""
    written = re.findall(rf"[^\W_{UNSPACED}]+", text)
    pairs = re.findall(rf"(?=((?:(?![\W_])[{UNSPACED}]){{2}}))", text)
    numbers = Counter(word.lower() for word in written if any(map(str.isdigit, word)))
    words = Counter({*(word.lower() for word in written), *pairs}) | numbers
    names = {word.lower() for word in written if word[0].isupper() and word.lower() in known}
    names |= words.keys() & TELLING
    return words, Counter(names) | numbers


def plainly_copies(one: str, other: str, known: set[str]) -> bool:
    (words, names), (others, more) = plain_words(one, known), plain_words(other, known)
    few, many = sorted((words.total(), others.total()))
    if not few or few < wording.AS_LONG * many:
        return False
    shared = (words & others).total()
    return (shared >= wording.SHARED * words.total() and names <= others) or (
        shared >= wording.SHARED * others.total() and more <= words
    )


PIECES = [
    "bridge",
    "Bridge",
    "old",
    "1927",
    "4",
    "a",
    "Élan",
    "élan",
    "жук",
    "Жук",
    "的桥",
    "橋",
    "ward_9",
    "é",
    "four",
    "Forbidden",
    "v2",
    "Ab3",
]
MORE = ["😀", "İs", "x" * 70, "x" * 71, "", "_"]
WRITTEN = st.builds(
    lambda pieces, between: between.join(pieces),
    st.lists(st.sampled_from([*PIECES, *MORE]), max_size=8),
    st.sampled_from([" ", " ", "", "\n", ",", ", "]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WRITTEN, min_size=1, max_size=6))
@example(["", "", "a"])
@example(["的桥在这里", "的桥在这里 1", "的桥在这"])
def test_copies_are_those_of_sets_of_words(texts):
    same = wording.copies_among(texts)
    known = set().union(*map(plain_names, texts))
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            assert same[i, j] == (i == j or plainly_copies(one, other, known)), (one, other)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_any_text_can_be_compared(texts):
    same = wording.copies_among(texts)
    assert same.diagonal().all() and (same == same.T).all()


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_an_edited_passage_is_a_copy(edit, seed):
    edited = edit(PASSAGE, np.random.default_rng(seed))
    assert edited != PASSAGE and wording.copies_among([PASSAGE, edited]).all()


@pytest.mark.parametrize(
    "other",
    [
        PASSAGE.replace("1927", "1931"),
        PASSAGE.replace("Oldham", "Newbury"),
        PASSAGE.replace("closed for", "open for"),
        PASSAGE.replace("the two banks", "the three banks"),
        PASSAGE.split(". ")[0],
        " ".join([PASSAGE, *(f"And word{i} follows." for i in range(99))]),
        "",
        "… !",
    ],
    ids=[
        "another year",
        "another name",
        "the opposite",
        "another number in words",
        "a sentence of it",
        "part of something longer",
        "nothing",
        "no words",
    ],
)
def test_another_fact_or_scope_makes_another_passage(other):
    assert not wording.copies_among([PASSAGE, other])[0, 1]


def test_a_name_is_one_at_the_beginning_of_a_sentence_where_another_passage_tells():
    one, other = (
        f"{place} is where the bridge was opened in 1927 by its mayor." for place in ("Ansbach", "Calw")
    )
    assert wording.copies_among([one, other])[0, 1]  # as "First" and "Then" would be
    assert not wording.copies_among([one, other, "The road to Calw and Ansbach is closed."])[0, 1]


def test_a_fact_more_is_a_copy_of_the_fact_less():
    """One of two has to repeat the other: the one with more to say may lead, or be led."""
    assert wording.copies_among([PASSAGE, PASSAGE + " Its architect was Ida Holm."]).all()


def test_texts_too_long_to_compare_are_copies_of_nothing():
    long = "word " * wording.LONGEST_TEXT
    assert (wording.copies_among([long, long]) == np.eye(2, dtype=bool)).all()


def test_each_goes_with_the_first_that_it_is_a_copy_of():
    different = [PASSAGE.replace("Severin", f"Place{i}").replace("1927", str(1800 + i)) for i in range(12)]
    texts = [*different, *(f"Skip to content. {text}" for text in reversed(different))]
    found = wording.repeating(texts)
    assert found is not None and found.tolist() == [*range(12), *range(11, -1, -1)]
    assert wording.repeating([*different, texts[12]]) is None  # one copy does not make a pool of copies


ROWS = with_copies(topics(20, dim=200, seed=8), 4, 0.95, 9).astype(np.float32)
GROUP = np.tile(np.arange(20), 5)
QUERY = ROWS[:20].mean(axis=0)
COPIED = [f"Place{i} is where the {i}th river meets the sea. {PASSAGE}" for i in GROUP]
UPDATES = [f"Update {at} on ticket {i}: still waiting for a reply of Oldham." for at, i in enumerate(GROUP)]


def test_vectors_alone_see_groups_and_words_say_what_they_are():
    assert select(ROWS, QUERY, 5).near_copies == 80
    copies = select(ROWS, QUERY, 10, texts=COPIED)
    assert copies.near_copies == 80 and len(set(GROUP[copies.indices])) == 10
    assert select(ROWS, QUERY, 5, texts=UPDATES).near_copies == 0


def test_a_covered_copy_is_told_with_what_stands_for_it():
    found = select(ROWS, QUERY, 20, texts=COPIED)
    for pick, stands in zip(found.indices, found.stands_for, strict=True):
        assert set(np.flatnonzero(GROUP[pick] == GROUP)) <= set(stands.tolist())


def test_names_of_passages_say_nothing_and_vectors_decide():
    assert select(ROWS, QUERY, 5, texts=[f"passage {i}" for i in range(100)]).near_copies == 80
    assert select(ROWS, QUERY, 5, texts=[""] * 100).near_copies == 80


def test_a_given_sigma_sets_nothing_aside_whatever_the_words():
    assert select(ROWS, QUERY, 5, sigma=0.05, texts=COPIED).near_copies == 0


def test_texts_follow_their_vectors_wherever_they_stand():
    order = np.random.default_rng(3).permutation(100)
    one = select(ROWS, QUERY, 10, texts=COPIED)
    other = select(ROWS[order], QUERY, 10, texts=[COPIED[i] for i in order])
    assert order[other.indices].tolist() == one.indices.tolist()
    equal = np.concatenate([ROWS, ROWS])  # copies to the bit share a row
    twice = select(equal, QUERY, 10, texts=COPIED * 2)
    assert (twice.indices % 100).tolist() == one.indices.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_in_a_large_pool_the_nearest_are_compared(dtype):
    rows = with_copies(topics(80, dim=200, seed=8), 4, 0.95, 8).astype(dtype)
    asked = []

    def texts(at):
        asked.append(len(at))
        return [f"Place{i % 80} is where the {i % 80}th river meets the sea. {PASSAGE}" for i in at]

    pool = from_embeddings(rows[:80].mean(axis=0), rows, texts=texts)
    assert asked == [256] and pool.groups is not None


def test_texts_are_read_only_where_there_may_be_copies():
    def unread(at):
        raise AssertionError("read")

    clean = topics(100, dim=200)
    assert from_embeddings(clean[0], clean, texts=unread).groups is None
    assert from_embeddings(QUERY, ROWS, sigma=0.1, texts=unread).groups is None
    with pytest.raises(AssertionError, match="read"):
        from_embeddings(QUERY, ROWS, texts=unread)


@pytest.mark.parametrize("texts", [["one"], "word" * 25, [1] * 100, [None] * 100])
def test_texts_that_do_not_go_with_the_candidates_are_refused(texts):
    with pytest.raises(InvalidInputError, match="100 strings, one a candidate"):
        select(ROWS, QUERY, 5, texts=texts)


def test_many_queries_have_their_own_texts():
    rows, queries = np.stack([ROWS, ROWS]), np.stack([QUERY, QUERY])
    copies, updates = select_many(rows, queries, 5, texts=[COPIED, UPDATES])
    assert (copies.near_copies, updates.near_copies) == (80, 0)
    with pytest.raises(InvalidInputError, match="1 lists of texts for 2 queries"):
        select_many(rows, queries, 5, texts=[COPIED])
