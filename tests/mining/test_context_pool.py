"""Pools: targets and the company they keep, drawn again the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import PoolSettings, build_pool, find_targets
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from tests.examples import examples
from tests.models import WordBag

WORDS = ["robot", "arm", "wheel", "sensor", "motor", "battery", "camera", "gripper", "sonar", "frame"]
DOCUMENTS = [
    Document(f"toy.{first}.{second}", f"the {first} of a {second}")
    for first in WORDS
    for second in WORDS
    if first != second
]
CORPUS = MemoryCorpus("toy", DOCUMENTS, model=WordBag())
CASE = Case(id="one", question="which robot arm", targets=("toy.robot.arm",))


def names(pool, origin):
    return [one.document.fqn for one in pool.contexts if origin in one.origins]


def test_a_pool_has_the_target_and_company():
    pool = build_pool(CASE, CORPUS, PoolSettings(random_negatives=4, hard_negatives=3, neighbours=2))
    assert pool.target == "toy.robot.arm" and pool.targets == ("toy.robot.arm",)
    assert len([name for name in names(pool, "lexical") if name != pool.target]) == 3
    assert len([name for name in names(pool, "dense") if name != pool.target]) == 2
    assert len([name for name in names(pool, "dartboard") if name != pool.target]) == 2
    assert len(names(pool, "random")) == 4 and pool.target not in names(pool, "random")
    every = [one.document.fqn for one in pool.contexts]
    assert every == sorted(set(every)), "by name, which says nothing of where they come from"
    found = next(one for one in pool.contexts if one.document.fqn == pool.target)
    assert found.origins[:3] == ("target", "lexical", "dense")
    assert pool.documents == [one.document for one in pool.contexts]


def test_hard_negatives_are_the_best_by_words_that_are_no_target():
    pool = build_pool(CASE, CORPUS, PoolSettings(random_negatives=0, hard_negatives=5, neighbours=0))
    best = [document.fqn for document in CORPUS.lexical(CASE.question, 20)]
    best.remove("toy.robot.arm")
    assert sorted(name for name in names(pool, "lexical") if name != pool.target) == sorted(best[:5])


def test_one_seed_one_pool_whatever_else_is_drawn():
    first = build_pool(CASE, CORPUS)
    for other in ("two", "three"):
        build_pool(Case(id=other, question="sonar"), CORPUS)
    assert build_pool(CASE, CORPUS) == first
    renamed = Case(id="other", question=CASE.question, targets=CASE.targets)
    assert names(build_pool(CASE, CORPUS, PoolSettings(seed=1)), "random") != names(first, "random")
    assert names(build_pool(renamed, CORPUS), "random") != names(first, "random")
    assert names(build_pool(renamed, CORPUS), "lexical") == names(first, "lexical")


def test_several_targets_and_none():
    both = Case(id="b", question="robot", targets=("toy.wheel.arm", "toy.arm.robot", "toy.wheel.arm"))
    pool = build_pool(both, CORPUS)
    assert pool.target == "toy.wheel.arm" and pool.targets == ("toy.wheel.arm", "toy.arm.robot")
    bare = build_pool(Case(id="n", question="robot"), CORPUS)
    assert bare.target is None and bare.targets == () and len(bare.contexts) > 5


def test_texts_that_repeat_are_one_context():
    documents = [Document(name, "the same  robot\n words") for name in "abc"]
    documents += [Document("d", "the same robot words"), Document("e", "a robot of its own")]
    corpus = MemoryCorpus("copies", documents, model=WordBag())
    pool = build_pool(Case(id="x", question="same robot words", targets=("b",)), corpus)
    assert [one.document.fqn for one in pool.contexts] == ["b", "e"]
    assert pool.contexts[0].origins == ("target", "random", "lexical", "dense", "dartboard")


def test_small_corpora_give_what_they_have():
    corpus = MemoryCorpus("two", [Document("a", "robot"), Document("b", "sea")], model=WordBag())
    pool = build_pool(
        Case(id="x", question="robot", targets=("a",)), corpus, PoolSettings(random_negatives=50)
    )
    assert [one.document.fqn for one in pool.contexts] == ["a", "b"]


def test_a_target_that_is_not_there():
    case = Case(id="x", question="robot", targets=("toy.robot.amr",), place="cases.yaml, line 7")
    with pytest.raises(DatasetError) as caught:
        find_targets(case, CORPUS)
    assert str(caught.value).startswith("cases.yaml, line 7: target 'toy.robot.amr' of 'x' is not in toy")
    assert "near to it are toy.robot.arm" in str(caught.value)
    with pytest.raises(DatasetError, match=r"is not in toy; names there are such as toy\.\w+\.\w+, "):
        find_targets(Case(id="x", question="robot", targets=("0000",)), CORPUS)


@pytest.mark.parametrize("knob", ["random_negatives", "hard_negatives", "neighbours"])
def test_numbers_below_zero(knob):
    with pytest.raises(ConfigError, match=f"{knob} must be >= 0"):
        build_pool(CASE, CORPUS, PoolSettings(**{knob: -1}))


@given(
    st.sampled_from(WORDS),
    st.lists(st.sampled_from([document.fqn for document in DOCUMENTS]), max_size=3),
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(0, 8)),
    st.integers(0, 3),
)
@examples(40)
def test_pools_hold_what_was_asked_for(word, targets, numbers, seed):
    case = Case(id="h", question=f"the {word}", targets=tuple(targets))
    drawn, hard, near = numbers
    pool = build_pool(
        case, CORPUS, PoolSettings(random_negatives=drawn, hard_negatives=hard, neighbours=near, seed=seed)
    )
    assert set(targets) == set(pool.targets)
    other = [one for one in pool.contexts if "target" not in one.origins]
    for origin, number in (("random", drawn), ("lexical", hard), ("dense", near), ("dartboard", near)):
        assert sum(origin in one.origins for one in other) == number
    texts = [one.document.text for one in pool.contexts]
    assert len(texts) == len(set(texts))
