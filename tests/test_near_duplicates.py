"""Near-duplicates by their words: which copies are found, and which facts keep texts apart."""

import doctest
import tracemalloc
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dartboard.near_duplicates
from dartboard.datasets import demo
from dartboard.datasets.near_copies import EDITS
from dartboard.errors import InvalidInputError
from dartboard.near_duplicates import LONGEST, are_alike, fingerprint, group_fingerprints, near_duplicates
from tests.examples import examples

PASSAGE = (
    "The bridge at Severin was opened in 1927 by the mayor. It is known as the longest wooden bridge of the "
    "county, although several others are older. During the flood it was closed for repairs, and traffic "
    "used the ferry at Oldham instead. It carries about 4,000 vehicles between the two banks every day."
)
CHINESE = (
    "塞维林大桥于1927年由市长主持通车,是全县最长的木桥,"
    "不过还有几座桥比它更古老。洪水期间大桥关闭维修,车辆改乘渡轮。"
)
HINDI = (
    "यह पुल 1927 में खोला गया था और यह ज़िले का सबसे लंबा लकड़ी का पुल है। बाढ़ के समय इसे मरम्मत के लिए "
    "बंद कर दिया गया था और लोग नाव से नदी पार करते थे, जब तक कि काम पूरा नहीं हो गया।"
)


def same(one: str, other: str) -> bool:
    groups = near_duplicates([one, other]).tolist()
    assert groups == near_duplicates([one, other], pairs=np.array([[1, 0]])).tolist()
    return groups == [0, 0]


def test_the_example_runs():
    assert doctest.testmod(dartboard.near_duplicates).failed == 0


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("seed", range(3))
def test_an_edited_passage_is_a_duplicate(edit, seed):
    edited = edit(PASSAGE, np.random.default_rng(seed))
    assert edited != PASSAGE and same(PASSAGE, edited)


LINES = [
    "jest.fn() creates a mock function that records every call and the arguments it was given.",
    "Without an implementation, the mock function returns undefined when it is invoked by a test.",
    "Call mockClear() between two tests to reset what was recorded, or set clearMocks in jest.config.js.",
    "Timers can be replaced, too, so that a test that waits 5000 milliseconds ends at once.",
    "The module registry is reset for each test file, which keeps local state from leaking.",
    "Snapshots are written beside the test, and have to be committed along with the code.",
]


@pytest.mark.parametrize(
    "other",
    [
        PASSAGE.upper(),
        PASSAGE.replace(". ", ".\n\n* "),
        PASSAGE.replace(" ", "\n", 20),
        PASSAGE.replace("wooden", "wood-\nen").replace("repairs", "re\u00adpairs"),
        f"<html><body class='x1'><h1>{PASSAGE.replace('. ', '.</p><p id=7>')}</h1></body></html>",
        PASSAGE.replace("Severin", "[Severin](https://example.com/Places/12)").replace("ferry", "**ferry**"),
        PASSAGE.replace("'", "&#39;").replace("mayor", "m&#97;yor"),
        PASSAGE.replace("4,000", "４,０００"),
        PASSAGE + " Its architect was Ida Holm.",
        PASSAGE[PASSAGE.index("It is known") :],
        PASSAGE.replace("mayor. It", "mayor. An older one, of 1811, had burnt down. It"),
    ],
    ids=[
        "case",
        "bullets",
        "lines",
        "hyphens",
        "html",
        "link",
        "entities",
        "width",
        "addition",
        "cut",
        "insertion",
    ],
)
def test_layout_markup_cuts_and_additions_leave_a_duplicate(other):
    assert same(PASSAGE, other)


def test_chunks_that_were_cut_two_lines_apart_are_duplicates():
    assert same("\n".join(LINES[:5]), "\n".join(LINES[1:]))
    assert not same("\n".join(LINES[:4]), "\n".join(LINES[3:]))


@pytest.mark.parametrize(
    "other",
    [
        PASSAGE.replace("1927", "1931"),
        PASSAGE.replace("Oldham", "Newbury"),
        PASSAGE.replace("4,000", "4,500"),
        PASSAGE.replace("Severin", "Oldham"),
        PASSAGE[PASSAGE.index("It is known") :].replace("Oldham", "Newbury"),
        f"Skip to main content. {PASSAGE.replace('1927', '1931')}",
        PASSAGE.split(". ")[0],
        " ".join([PASSAGE, *(f"And word{i} follows." for i in range(99))]),
        "",
        "… !",
    ],
    ids=[
        "year",
        "name",
        "number",
        "repeated-name",
        "cut",
        "boilerplate",
        "sentence",
        "chapter",
        "empty",
        "signs",
    ],
)
def test_another_fact_or_scope_makes_another_text(other):
    assert not same(PASSAGE, other)


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
        ("with jest.fn there", "with jest.spyOn there"),
        ("with read_csv there", "with read_sql there"),
        ("for ticket OPS-17 there", "for ticket OPS-18 there"),
        ("in Köln there", "in Łódź there"),
    ],
)
@pytest.mark.parametrize("place", ["first", "inside", "last"])
def test_numbers_are_read_whole_and_names_wherever_they_stand(one, other, place):
    text = {
        "first": "{}. The bridge is old, and its keeper lives beside it in a house of stone, all year round.",
        "inside": "The bridge is old, and its keeper lives in a house of stone. {}. It is closed in winter.",
        "last": "The bridge is old, and its keeper lives beside it in a house of stone, all year round. {}",
    }[place]
    assert not same(text.format(one), text.format(other))


def test_a_capitalised_word_that_begins_a_sentence_is_a_name_unless_it_is_a_common_word():
    one, two, three = (
        f"{word} the old bridge was closed in winter, its keeper left the house of stone and went to work "
        "in the city until the snow was gone."
        for word in ("When", "After", "Ansbach")
    )
    common = "It opens when the snow melts, and after the flood it is closed."
    assert near_duplicates([one, two, three, common]).tolist() == [0, 0, 0, 3]
    assert near_duplicates([one, two]).tolist() == [0, 1]  # nothing says that these are no names
    assert near_duplicates([three, three.replace("Ansbach", "Calw"), common]).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Vaccines cause autism.", "Vaccines do not cause autism."),
        ("Why a flat tax is fairer", "Why a flat tax is regressive"),
        (
            "Raising the minimum wage increases poverty.",
            "Raising the minimum wage reduces poverty.",
        ),
        ("The earth is flat.", "It is a myth of the old days that the earth is flat."),
        ("yes", "no"),
        ("John went home.", "Mary went home."),
    ],
)
def test_a_word_makes_a_difference_in_a_short_text(one, other):
    assert not same(one, other)
    assert same(one, f"<p>{one.lower()}</p>")


@pytest.mark.parametrize("text", [CHINESE, HINDI, PASSAGE.replace("the", "тот")], ids=["zh", "hi", "ru"])
def test_other_scripts(text):
    assert same(text, text[: len(text) * 4 // 5])
    assert same(text, f"«{text}»…")
    assert not same(text, text.replace("1927", "1931"))
    assert not same(text, text[: len(text) // 4])


def test_vowel_signs_are_part_of_a_word():
    assert fingerprint("कि") != fingerprint("का")


def test_a_group_is_what_its_first_text_covers():
    """No transitive closure: the last one is alike the second, and not the first."""
    cuts = [" ".join(PASSAGE.split()[start : start + 30]) for start in (0, 8, 16)]
    assert same(cuts[0], cuts[1]) and same(cuts[1], cuts[2]) and not same(cuts[0], cuts[2])
    assert near_duplicates(cuts).tolist() == [0, 0, 2]
    assert near_duplicates([cuts[1], cuts[0], cuts[2]]).tolist() == [0, 0, 0]


def test_what_says_less_represents_none_of_those_that_say_different_things():
    years = [f"{PASSAGE} Its toll was {10 + i} crowns in {2015 + i}." for i in range(4)]
    texts = [PASSAGE, *years, f"Skip to content. {years[2]}"]
    assert all(same(PASSAGE, year) for year in years)
    assert near_duplicates(texts).tolist() == [0, 1, 2, 3, 4, 3]


def test_each_goes_with_its_own_original():
    different = [PASSAGE.replace("Severin", f"Place{i}").replace("1927", str(1800 + i)) for i in range(12)]
    texts = [*different, *(f"Skip to content. {text}" for text in reversed(different))]
    assert near_duplicates(texts).tolist() == [*range(12), *range(11, -1, -1)]


def test_only_given_pairs_are_compared():
    texts = [PASSAGE, f"Skip to content. {PASSAGE}", f"Print this page. {PASSAGE}", "An old one."]
    assert near_duplicates(texts).tolist() == [0, 0, 0, 3]
    assert near_duplicates(texts, pairs=np.array([[2, 1]])).tolist() == [0, 1, 1, 3]
    assert near_duplicates(texts, pairs=np.zeros((0, 2), dtype=int)).tolist() == [0, 1, 2, 3]


def test_texts_without_words_are_no_duplicates():
    assert near_duplicates(["", "", "…", "…", "a", "a"]).tolist() == [0, 1, 2, 3, 4, 4]
    assert near_duplicates([]).tolist() == []
    assert group_fingerprints([]).tolist() == []


def test_long_texts_have_to_be_equal():
    long = " ".join(f"word{i}" for i in range(LONGEST + 1))
    assert near_duplicates([long, long.upper(), f"{long} more"]).tolist() == [0, 0, 2]
    assert len(fingerprint(long)) < 20


def test_many_copies_of_one_text_are_one_group():
    texts = [f"{PASSAGE} {' '.join(chr(97 + int(c)) for c in str(i))}" for i in range(300)]
    assert set(near_duplicates(texts).tolist()) == {0}


WORDS = ["bridge", "Bridge", "old", "1927", "a", "Élan", "жук", "Жук", "的桥", "ward_9", "iPad", "0.5", "(x)"]
WRITTEN = st.builds(
    lambda words, between: between.join(words),
    st.lists(st.sampled_from(WORDS), max_size=40),
    st.sampled_from([" ", "\n", ", ", "\n\n", ". ", "</b>", "&amp;"]),
)


@examples(200)
@given(st.lists(st.one_of(WRITTEN, st.text(max_size=60)), max_size=8))
@example(["\ud800", "\x00", "_", "._.", "a_", "İs", "😀"])
def test_groups_hold_together(texts):
    groups = near_duplicates(texts)
    assert (groups <= np.arange(len(texts))).all() and (groups[groups] == groups).all()
    assert groups.tolist() == group_fingerprints([fingerprint(text) for text in texts]).tolist()
    every = np.array(list(combinations(range(len(texts)), 2)), dtype=int).reshape(-1, 2)
    assert groups.tolist() == near_duplicates(texts, pairs=every).tolist()
    for one, other in every:
        if texts[one] == texts[other] and groups[one] != groups[other]:
            assert fingerprint(texts[one]) == fingerprint("")


@pytest.mark.parametrize("texts", ["word", [1, 2], [None]])
def test_what_is_no_text_is_refused(texts):
    with pytest.raises(InvalidInputError, match="list of strings"):
        near_duplicates(texts)


@pytest.mark.parametrize("pairs", [[[0, 2]], [[-1, 0]], [0, 1], [[0.5, 1.0]], [[0, 1, 1]]])
def test_pairs_that_are_no_positions_are_refused(pairs):
    with pytest.raises(InvalidInputError, match="positions in 2 texts"):
        near_duplicates(["one", "other"], pairs=np.array(pairs))


@pytest.mark.parametrize("data", [b"", b"abc", b"\x02\x00\x00\x00", fingerprint(PASSAGE)[:-1]])
def test_bytes_that_are_no_fingerprint_are_refused(data):
    with pytest.raises(InvalidInputError, match="make one with fingerprint"):
        group_fingerprints([fingerprint(PASSAGE), data])


def test_fingerprints_stay_the_same():
    """They are kept in stores: another format needs another version."""
    assert fingerprint("On Monday jest.fn ran twice.").hex() == (
        "01000000ca29b609092dd2df7d14c21b9473d87e28749608"
    )


@pytest.mark.parametrize("count", [24, 31, 52, 90])
def test_very_short_texts_that_differ_are_never_duplicates(count):
    """Each is one shingle, so that one wrong answer of the Bloom filter would make two of them equal."""
    texts = [f"text {number}" for number in range(count)]
    pairs = np.array(list(combinations(range(count), 2)))
    assert near_duplicates(texts, pairs=pairs).tolist() == list(range(count))
    assert near_duplicates([*texts, "Text 3"], pairs=np.array([[3, count]])).tolist()[-1] == 3


def test_many_texts_are_compared_in_blocks_with_the_same_groups(monkeypatch):
    rng = np.random.default_rng(0)
    originals = [row["text"] for row in demo.passages()]
    edited = [edit(text, rng) for text in originals[::3] for edit in EDITS.values()]
    texts = [*originals, *edited, *(f"{text} Fee: {n} euros." for n, text in enumerate(originals[:40]))]
    at_once = near_duplicates(texts)
    assert len(np.unique(at_once)) < len(texts) - 200
    for name, size in (("_MATRIX_TEXTS", 5), ("_PAIRS", 50)):
        monkeypatch.setattr(dartboard.near_duplicates, name, size)
    assert near_duplicates(texts).tolist() == at_once.tolist()


def test_a_large_group_stays_one():
    text = PASSAGE + " It was painted {} times, and nobody knows who paid for the paint of the {} railing."
    groups = near_duplicates([text.format("a" * n, "b" * n) for n in range(1, 1000)])
    assert np.unique(groups).tolist() == [0]


def test_no_two_of_many_notes_about_one_incident_are_taken_for_copies():
    """A single shingle found by mistake would move the shared part, and with it the names that count."""
    text = (
        "The import script leaks file handles after a failover, because the table has outgrown its index. "
        * 2
    )
    notes = [
        f"{text}Seen in {town} on day {n * 7}, ticket {n}" for n in range(400) for town in ("Lima", "Oslo")
    ]
    assert len(set(near_duplicates(notes).tolist())) == len(notes)


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=3, max_size=40), min_size=2, max_size=2))
def test_texts_are_alike_as_sets_of_shingles_say(words):
    one, other = sorted(words, key=len)
    shingles = [list(zip(text, text[1:], text[2:], strict=False)) for text in (one, other)]
    shared = sum(shingle in shingles[1] for shingle in shingles[0])
    few, many = map(len, shingles)
    contained, resembling = (1, 0.5) if few < 20 else (0.7, 0.4)
    expected = shared > 0 and shared >= contained * few and shared >= resembling * (few + many - shared)
    assert are_alike(" ".join(one), " ".join(other)) == (expected or one == other)


@pytest.mark.parametrize("spread", [1, 64_000], ids=["every number once", "numbers that repeat"])
def test_many_numbers_take_little_memory(spread):
    draw = np.random.default_rng(0)
    numbers = np.arange(510 * 254) if spread == 1 else draw.integers(spread, size=510 * 254)
    texts = [" ".join(f"{number + 100_000}" for number in row) for row in numbers.reshape(510, 254)]
    texts[1] = texts[0] + " 5"
    made = [fingerprint(text) for text in texts]
    tracemalloc.start()
    try:
        groups = group_fingerprints(made)
        assert groups[1] == 0 and tracemalloc.get_traced_memory()[1] < 150 * 2**20
    finally:
        tracemalloc.stop()


def test_one_long_text_costs_pairs_of_short_ones_no_memory():
    same = (
        "in 1927 the old ferry stopped and the long new bridge over the river was opened to all the traffic "
        "that had waited on both banks"
    )
    texts = [f"{same} {chr(97 + at % 26) * (1 + at // 26)}" for at in range(200)]
    made = [fingerprint(text) for text in [*texts, " ".join(map(str, range(1000, 2900)))]]
    tracemalloc.start()
    try:
        groups = group_fingerprints(made)
        assert set(groups[:200]) == {0} and tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
