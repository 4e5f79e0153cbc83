"""What was already shown, pages, caps by any field, and which of several copies is picked."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import METHODS, Limits, select
from tests.examples import examples
from tests.selection import oracle
from tests.selection.pools import topical

GREEDY = sorted(set(METHODS) - {"exhaustive"})


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.03, 0.09, 0.3])
@pytest.mark.parametrize("copies", [0, 1])
def test_picks_after_what_was_seen_equal_the_oracle(sigma, copies):
    query, embeddings = topical(12, seed=int(1e4 * sigma), dim=12, copies=copies, dtype=np.float64)
    seen = [2, 5]
    picks, gains, total = oracle.greedy(*oracle.scaled_cosine(query, embeddings), sigma, 5, seen=seen)
    ours = select(embeddings, query, 5, sigma=sigma, seen=seen, relevance_below=0)
    np.testing.assert_array_equal(embeddings[ours.indices], embeddings[picks[: len(ours)]])
    for got, want in zip(ours.log_gains, gains, strict=False):
        assert got == pytest.approx(float(mpmath.log(want / total)), rel=1e-9, abs=1e-6)


@examples(40)
@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.02, 0.09, "auto"]))
def test_seen_passages_are_forced_picks_that_are_not_returned(seed, count, sigma):
    query, embeddings = topical(40, seed=seed, dim=16)
    shown = np.random.default_rng(seed).choice(40, count, replace=False).tolist()
    forced = select(embeddings, query, count + 4, sigma=sigma, must_include=shown)
    found = select(embeddings, query, 4, sigma=sigma, seen=shown)
    assert found.indices.tolist() == forced.indices[count:].tolist()
    np.testing.assert_allclose(found.gains, forced.gains[count:], rtol=1e-6)
    assert found.covered_before == pytest.approx(forced.coverage[count - 1], abs=1e-5)
    assert found.coverage[-1] == pytest.approx(forced.coverage[-1], abs=1e-5)
    assert found.coverage[-1] / found.bound <= 1 + 1e-9


def test_vectors_that_were_seen_count_as_candidates_do():
    query, embeddings = topical(30)
    by_place = select(embeddings, query, 5, sigma=0.09, seen=[0, 3])
    others = np.setdiff1d(np.arange(30), [0, 3])
    by_vector = select(embeddings[others], query, 5, sigma=0.09, seen=embeddings[[0, 3]])
    np.testing.assert_array_equal(embeddings[by_place.indices], embeddings[others][by_vector.indices])
    assert by_vector.indices.max() < len(others)
    assert all((stands < len(others)).all() for stands in by_vector.stands_for)
    limited = select(
        embeddings[others],
        query,
        token_budget=9,
        costs=[3] * 28,
        max_per_source=1,
        sources=list(range(28)),
        texts=[f"text {i}" for i in range(28)],
        scores=np.arange(28.0),
        seen=embeddings[[0, 3]],
    )
    assert len(limited) == 3


def test_copies_of_what_was_seen_are_not_shown_again():
    query, embeddings = topical(6, copies=2, dim=16)
    first = select(embeddings, query, 3)
    more = select(embeddings, query, 18, seen=first.indices)
    shown = {tuple(row) for row in embeddings[first.indices]}
    assert not shown & {tuple(row) for row in embeddings[more.indices]}
    assert (more.gains > 0).all() and len(more) == 3
    assert len(select(embeddings, query, 5, seen=range(6))) == 0


def test_near_duplicates_of_what_was_seen_are_not_shown_again():
    query, embeddings = topical(10, dim=16)
    groups = [0, 0, 0, 3, 4, 5, 6, 7, 8, 9]
    found = select(embeddings, query, 10, groups=groups, seen=[1])
    assert not {0, 1, 2} & set(found.indices.tolist())


@pytest.mark.parametrize("method", sorted(METHODS))
def test_no_method_picks_what_was_seen(method):
    query, embeddings = topical(12, dim=16)
    found = select(embeddings, query, 4, method=method, seen=[0, 1, 2])
    assert len(found) and not {0, 1, 2} & set(found.indices.tolist())
    assert found.covered_before > 0 and found.coverage[-1] >= found.covered_before


def test_a_small_gain_is_small_against_the_best_before_anything_was_seen():
    query, embeddings = topical(30, dim=16)
    everything = select(embeddings, query, 8)
    rest = select(embeddings, query, 8, seen=everything.indices, min_gain_share=0.5)
    assert len(rest) == 0


@examples(40)
@given(
    st.integers(0, 10_000), st.integers(1, 4), st.sampled_from(GREEDY), st.sampled_from([0.01, 0.09, "auto"])
)
def test_pages_follow_one_another(seed, size, method, sigma):
    query, embeddings = topical(20, seed=seed, dim=16, copies=1)
    caps = {"max_per": {"topic": 3}, "fields": {"topic": [i % 9 for i in range(40)]}}
    options = {"method": method, "sigma": sigma, **(caps if seed % 2 else {})}
    whole = select(embeddings, query, 12, **options)
    pages = [select(embeddings, query, size, offset=at, **options) for at in range(0, 12, size)]
    joined = np.concatenate([page.indices for page in pages])[:12]
    assert joined.tolist() == whole.indices.tolist()
    assert len(set(joined.tolist())) == len(joined)
    np.testing.assert_allclose(np.concatenate([page.gains for page in pages])[:12], whole.gains, rtol=1e-6)
    np.testing.assert_allclose(pages[-1].coverage[0], whole.coverage[size * (len(pages) - 1)], rtol=1e-6)


def test_a_page_names_what_its_own_picks_represent():
    query, embeddings = topical(20, dim=16, copies=1)
    whole, page = select(embeddings, query, 6), select(embeddings, query, 3, offset=3)
    for own, all_ in zip(page.stands_for, whole.stands_for[3:], strict=True):
        assert own.tolist() == all_.tolist()


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"offset": -1}, ConfigError, "offset must be a whole number >= 0"),
        ({"offset": 1.5}, ConfigError, "offset must be a whole number >= 0"),
        ({"offset": 2, "token_budget": 9, "costs": [1] * 30}, ConfigError, "not with token_budget"),
        ({"offset": 2, "k": 2, "method": "exhaustive"}, ConfigError, "exhaustive has no pages"),
        ({"seen": [30]}, InvalidInputError, "seen: no candidate 30"),
        ({"seen": [1.5]}, ConfigError, "seen holds positions"),
        ({"seen": np.ones((2, 3))}, InvalidInputError, "seen have 3 dimensions where 384"),
        ({"seen": [3], "must_include": [3]}, ConfigError, "both in must_include and in seen"),
        ({"max_per": {"author": 0}}, ConfigError, "must be a whole number >= 1"),
        ({"max_per": {"author": None}}, ConfigError, "must be a whole number >= 1"),
        ({"max_per": ["author"]}, ConfigError, "fields with a number each"),
        ({"max_per": {"author": 2}}, ConfigError, "needs each candidate's 'author' in fields"),
        ({"max_per": {"a": 2}, "fields": {"a": [1]}}, InvalidInputError, "a has 1 entries for 30"),
        ({"max_per": {"a": 2}, "fields": {"a": [[]] * 30}}, InvalidInputError, "must be names"),
        ({"prefer": [1.0]}, InvalidInputError, "prefer must be 30 finite numbers"),
    ],
)
def test_what_cannot_be_is_refused(options, error, says):
    query, embeddings = topical(30)
    with pytest.raises(error, match=says):
        select(embeddings, query, **options)


def test_caps_hold_for_every_field_at_once():
    query, embeddings = topical(30)
    author, source = [i % 4 for i in range(30)], [i % 7 if i % 5 else None for i in range(30)]
    found = select(
        embeddings,
        query,
        12,
        max_per={"author": 2, "source": 1},
        fields={"author": author, "source": source},
    )
    authors = [author[i] for i in found]
    sources = [source[i] for i in found if source[i] is not None]
    assert max(map(authors.count, authors)) == 2 and len(sources) == len(set(sources))
    assert len(found) == 8
    with pytest.raises(ConfigError, match="must_include alone breaks max_per"):
        select(embeddings, query, 5, must_include=[0, 4], max_per={"a": 1}, fields={"a": author})


def test_the_preferred_copy_stands_for_its_group_and_nothing_else_changes():
    query, embeddings = topical(12, dim=16, copies=2, noise=0.01)
    groups = list(range(12)) * 3
    release = np.repeat([1.0, 3.0, 2.0], 12)
    plain = select(embeddings, query, 5, groups=groups)
    newest = select(embeddings, query, 5, groups=groups, prefer=release)
    assert [i % 12 for i in newest] == [i % 12 for i in plain]
    assert {i // 12 for i in newest} == {1}
    np.testing.assert_allclose(plain.gains, newest.gains)


def test_limits_read_columns_of_data_frames():
    column = {"author": np.array(["a", "b"])}
    assert Limits(k=1, max_per={"author": 1}, fields=column).caps()[0][1:] == (1, ("a", "b"))
