"""Near-copies by their words: against sets in plain Python, on edits, and in a selection."""

import re
from collections import Counter
from collections.abc import Set as AbstractSet

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dartboard.datasets.edits import EDITS
from dartboard.errors import InvalidInputError
from dartboard.selection import bandwidth, from_embeddings, select, select_many, wording
from dartboard.selection.telling import TELLING
from tests.selection.test_bandwidth import topics, walk, with_copies

pytestmark = pytest.mark.usefixtures("engine")

PASSAGE = (
    "The bridge at Severin was opened in 1927 by the mayor. It is known as the longest wooden bridge of the "
    "county, although several others are older. During the flood it was closed for repairs, and traffic "
    "used the ferry at Oldham instead. It carries about 4,000 vehicles between the two banks every day."
)


UNSPACED = "\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff"


WORD = rf"(?:[^\W_{UNSPACED}]|(?<=\d)[.,:/-](?=\d))+"
SIGNS = re.escape("([{*/\"'\u201c\u2018\u00ab-")
INSIDE = re.compile(rf"[^\W_][{SIGNS}]{{1,2}}\Z|(?:[^\W_]|,)(?!\n\n)[ \n\t\xa0]{{1,2}}[{SIGNS}]{{0,2}}\Z")


def plain_names(text: str) -> set[str]:
    """What begins with a capital after a word or a comma, or has one further on."""
    names = set()
    for found in re.finditer(WORD, text):
        word = found.group()
        if word[0].isupper() and INSIDE.search(text[: found.start()]):
            names.add(word.lower())
    return names


def mixed(word: str) -> bool:
    return any(letter.isupper() for letter in word[1:])


def plain_words(
    text: str, known: set[str], telling: AbstractSet[str] = TELLING
) -> tuple[Counter[str], Counter[str]]:
    """Words and names as the module's text defines them, and how often each has to stand in a copy."""
    written = re.findall(WORD, text)
    pairs = re.findall(rf"(?=((?:(?![\W_])[{UNSPACED}]){{2}}))", text)
    numbers = Counter(word.lower() for word in written if any(map(str.isdigit, word)))
    words = Counter({*(word.lower() for word in written), *pairs}) | numbers
    names = {word.lower() for word in written if mixed(word) or (word[0].isupper() and word.lower() in known)}
    names |= words.keys() & telling
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


def plainly_apart(one: str, other: str, known: set[str]) -> bool:
    """Names and numbers alone, and no telling words that are not one of these."""
    words, others = plain_words(one, known)[0], plain_words(other, known)[0]
    names, more = plain_words(one, known, set())[1], plain_words(other, known, set())[1]
    return not names <= others and not more <= words


def copied(texts: list[str]) -> np.ndarray:
    return wording.compare(texts).copies


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
    "iPad",
    "0.5",
    "5.0",
    "2024-05-03",
    "(Bridge)",
    "-Bridge",
    "**Élan**",
]
MORE = ["😀", "İs", "x" * 70, "x" * 71, "", "_"]
WRITTEN = st.builds(
    lambda pieces, between: between.join(pieces),
    st.lists(st.sampled_from([*PIECES, *MORE]), max_size=8),
    st.sampled_from([" ", " ", "", "\n", ",", ", ", "\n\n", " \n", ". ", "\xa0"]),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WRITTEN, min_size=1, max_size=6))
@example(["", "", "a"])
@example(["的桥在这里", "的桥在这里 1", "的桥在这"])
@example(["v2", "**Élan**\nBridge"])
def test_copies_are_those_of_sets_of_words(texts):
    copies, apart = wording.compare(texts)
    known = set().union(*map(plain_names, texts))
    for i, one in enumerate(texts):
        for j, other in enumerate(texts):
            assert copies[i, j] == (i == j or plainly_copies(one, other, known)), (one, other)
            assert apart[i, j] == (i != j and plainly_apart(one, other, known)), (one, other)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=5))
def test_any_text_can_be_compared(texts):
    copies, apart = wording.compare(texts)
    assert copies.diagonal().all() and (copies == copies.T).all() and (apart == apart.T).all()
    assert not (copies & apart).any()


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_an_edited_passage_is_a_copy(edit, seed):
    edited = edit(PASSAGE, np.random.default_rng(seed))
    assert edited != PASSAGE and copied([PASSAGE, edited]).all()


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
    assert not copied([PASSAGE, other])[0, 1]


def test_a_name_is_one_at_the_beginning_of_a_sentence_where_another_passage_tells():
    one, other = (
        f"{place} is where the bridge was opened in 1927 by its mayor." for place in ("Ansbach", "Calw")
    )
    assert copied([one, other])[0, 1]  # as "First" and "Then" would be
    assert not copied([one, other, "The road to Calw and Ansbach is closed."])[0, 1]


def test_a_fact_more_is_a_copy_of_the_fact_less():
    """One of two has to repeat the other: the one with more to say may lead, or be led."""
    assert copied([PASSAGE, PASSAGE + " Its architect was Ida Holm."]).all()


def test_what_says_less_stands_for_none_of_those_that_say_different_things():
    years = [f"{PASSAGE} Its toll was {10 + i} crowns in {2015 + i}." for i in range(4)]
    texts = [PASSAGE, *years, f"Skip to content. {years[2]}"]
    assert copied(texts)[0, 1:5].all()  # it repeats each of them
    assert wording.repeated(*wording.compare(texts)).tolist() == [0, 1, 2, 3, 4, 3]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a dose of 0.5 mg", "a dose of 5.0 mg"),
        ("version 1.2 of it", "version 2.1 of it"),
        ("on 2024-03-05 there", "on 2024-05-03 there"),
        ("at 10.0.1.2 there", "at 10.0.2.1 there"),
        ("by Professor\nBerg there", "by Professor\nVoss there"),
        ("by one (Berg) there", "by one (Voss) there"),
        ("by Jean-Luc there", "by Jean-Paul there"),
        ("by **Berg** there", "by **Voss** there"),
        ("by\xa0Berg there", "by  Voss there"),
        ("for the iPhone there", "for the iPad there"),
        ("JSON is used there", "YAML is used there"),
    ],
)
def test_numbers_are_read_whole_and_names_wherever_they_stand(one, other):
    text = "The bridge is old, and its keeper lives beside it in a house of stone. {} {}"
    found = wording.compare([text.format(some, "It is closed in winter.") for some in (one, other)])
    assert found.apart[0, 1] and not found.copies[0, 1]


@pytest.mark.parametrize("before", ["It is old.\n\n", "It is old.\n", "", "Note: ", "- "])
def test_a_capital_that_begins_something_is_no_name(before):
    one, other = (
        f"{before}{word} the bridge was opened, its keeper left the house." for word in ("When", "After")
    )
    assert copied([one, other]).all()


def test_each_names_what_the_other_does_not():
    longer = PASSAGE + " Its architect was Ida Holm."
    texts = [PASSAGE, PASSAGE.replace("1927", "1931"), longer, "An old one was here before, of stone."]
    told = wording.compare(texts).apart
    assert told[0].tolist() == [False, True, False, False]  # one of two that has more to say does not do
    assert told[1, 2] and not told.diagonal().any()


def test_texts_too_long_to_compare_are_copies_of_nothing():
    long = "word " * wording.LONGEST_TEXT
    assert (copied([long, long]) == np.eye(2, dtype=bool)).all()
    assert not wording.telling([long] * 3)


def test_each_goes_with_the_first_that_it_is_a_copy_of():
    different = [PASSAGE.replace("Severin", f"Place{i}").replace("1927", str(1800 + i)) for i in range(12)]
    texts = [*different, *(f"Skip to content. {text}" for text in reversed(different))]
    assert wording.repeated(*wording.compare(texts)).tolist() == [*range(12), *range(11, -1, -1)]


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


CLEAN = topics(90, dim=200, seed=3).astype(np.float32)
ANSWER = np.concatenate([CLEAN, with_copies(CLEAN[:1], 9, 0.9)[1:]]).astype(np.float32)
FACTS = [f"Place{i} is where the {i}th river meets the sea." for i in range(90)]


def test_a_handful_of_copies_around_the_answer_is_set_aside():
    """Far too few to crowd the pool, and by vectors alone they come back."""
    assert select(ANSWER, CLEAN[0], 5).near_copies == 0
    found = select(ANSWER, CLEAN[0], 5, texts=[*FACTS, *[f"As noted: {FACTS[0]}"] * 9])
    assert found.near_copies == 9 and len({0 if pick >= 90 else pick for pick in found.indices}) == 5


def test_two_copies_of_the_best_are_set_aside_however_many_others_there_are():
    rows = topics(400, dim=200, seed=3)
    rows = np.concatenate([rows, with_copies(rows[:1], 2, 0.97)[1:]])
    facts = [f"Place{i} is where the {i}th river meets the sea." for i in range(400)]
    query = rows[0] + 0.5 * rows[1:6].sum(axis=0)
    found = select(rows, query, 5, texts=[*facts, *[f"As noted: {facts[0]}"] * 2])
    assert found.near_copies == 2 and len({0 if pick >= 400 else pick for pick in found.indices}) == 5


def test_copies_of_what_the_query_does_not_mean_stay():
    found = select(ANSWER, CLEAN[1], 5, texts=[*FACTS, *[f"As noted: {FACTS[0]}"] * 9])
    assert found.near_copies == 0


@pytest.mark.parametrize("n", [12, 63, 100, 300])
def test_neighbours_that_words_tell_apart_do_not_repeat_each_other(n):
    rows = walk(n)
    told = [f"In {1800 + i} the mayor of Place{i} opened a bridge, which was closed later." for i in range(n)]
    same = [f"The mayor opened a {'very ' * (i % 7)}old bridge, which was closed later." for i in range(n)]
    wide, by_words, copies = (
        from_embeddings(rows[n // 2], rows, texts=texts) for texts in (None, told, same)
    )
    assert by_words.groups is None
    assert by_words.sigma.value == pytest.approx(wide.sigma.value / bandwidth.BY_WORDS.sharper)
    assert copies.groups is not None  # who says the same in the same words is one


@pytest.mark.parametrize("n", [12, 40])
def test_a_small_pool_without_names_repeats_itself(n):
    rows, rng = topics(n, seed=6), np.random.default_rng(2)
    words = [f"word{''.join(chr(97 + int(c)) for c in str(i))}" for i in range(500)]
    texts = [" ".join(rng.choice(words, 9)) for _ in range(n)]
    told = [f"{text}, in {1900 + i}" for i, text in enumerate(texts)]
    without, nameless, named = (
        from_embeddings(rows[0], rows, texts=some).sigma.value for some in (None, texts, told)
    )
    assert nameless == without
    assert named == pytest.approx(without / bandwidth.BY_WORDS.sharper)


def test_a_small_pool_sets_copies_aside():
    rows = with_copies(topics(4, dim=200, seed=8), 4, 0.9, 9)
    texts = [COPIED[i % 4] for i in range(20)]
    assert select(rows, rows[:4].mean(axis=0), 4).near_copies == 0
    found = select(rows, rows[:4].mean(axis=0), 4, texts=texts)
    assert found.near_copies == 16 and {int(pick) % 4 for pick in found.indices} == {0, 1, 2, 3}
    assert len(set(select(rows, rows[0], 6, texts=texts).indices.tolist())) == 6  # and then the rest


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
