"""What is compiled makes the picks of what is not, and is used only if it is what was read."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mpmath
import numpy as np
import pytest

from dartboard.selection import compiled, copies, dense, halves, quick, select, select_many
from dartboard.selection.coverage import rounding_32
from tests.selection.pools import topical

CASES = [
    (n, k, sigma, dtype, copies, share)
    for n in (12, 90, 400)
    for k in (1, 10, 40)
    for sigma in (1e-3, 0.02, 0.09, 0.3, 5.0)
    for dtype in (np.float32, np.float64)
    for copies, share in ((0, 0.0), (1, 0.0), (0, 0.2))
]


def run(case):
    n, k, sigma, dtype, copies, share = case
    query, vectors = topical(n, seed=k, dim=48, copies=copies, dtype=dtype)
    return select(vectors, query, k, sigma=sigma, min_gain_share=share)


def same(before, after, case=None):
    assert after.indices.tolist() == before.indices.tolist(), case
    np.testing.assert_allclose(after.gains, before.gains, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after.log_gains, before.log_gains, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(after.coverage, before.coverage, rtol=1e-4)
    np.testing.assert_allclose(after.similarity, before.similarity, atol=1e-6)
    np.testing.assert_allclose(after.relevance, before.relevance, rtol=1e-3, atol=1e-4)
    assert abs(after.bound - before.bound) < 0.05
    assert (after.owners != before.owners).mean() <= 0.01


def scattered(seed, n=100, dim=64):
    """A pool in which nobody is anybody's copy."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, dim)) + 0.7 * rng.standard_normal(dim)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.mean(axis=0).astype(np.float32), vectors.astype(np.float32)


def with_numpy(monkeypatch, call):
    with monkeypatch.context() as patch:
        patch.setattr(compiled, "_machine", None)
        return call()


@pytest.mark.parametrize("found", [True, False], ids=["our BLAS", "another BLAS"])
def test_compiled_picks_are_those_of_numpy(machine, monkeypatch, found):
    if not found:
        monkeypatch.setattr(halves, "_syrk", lambda: None)
    for case in CASES:
        same(with_numpy(monkeypatch, lambda case=case: run(case)), run(case), case)


@pytest.mark.parametrize("sigma", [0.012, 0.05, 0.09, "auto"])
@pytest.mark.parametrize("scale", [1.0, 37.0], ids=["unit rows", "rows of any length"])
def test_plain_questions_are_answered_at_once(machine, monkeypatch, sigma, scale):
    answered = 0
    for seed in range(20):
        query, vectors = scattered(seed)
        got = quick._select_natively(machine, np.float32(scale) * vectors, query, 8, sigma)
        want = with_numpy(monkeypatch, lambda q=query, v=vectors: select(v, q, 8, sigma=sigma))
        if got is None:  # a pick that float32 does not prove
            continue
        answered += 1
        same(want, got)
        assert got.sigma.value == pytest.approx(want.sigma.value, rel=1e-6)
        assert got.sigma.source == want.sigma.source
    assert answered >= 19


@pytest.mark.parametrize("sigma", [0.004, 0.01, 0.05])
def test_what_float32_leaves_open_is_settled_in_double_precision(machine, monkeypatch, sigma):
    """Vectors pressed together, as some encoders do, so that cosines are equal in float32 and gains close."""
    for seed in range(12):
        query, vectors = (part + np.float32(0.2) for part in scattered(seed))
        got = quick._select_natively(machine, vectors, query, 10, sigma)
        want = with_numpy(
            monkeypatch, lambda q=query, v=vectors: select(v.astype(np.float64), q, 10, sigma=sigma)
        )
        assert got is not None and got.indices.tolist() == want.indices.tolist()
        np.testing.assert_allclose(got.gains, want.gains, rtol=1e-9 if sigma < 0.03 else 1e-4)
        np.testing.assert_allclose(got.relevance, want.relevance, rtol=1e-9 if sigma < 0.03 else 1e-4)
        assert got.bound <= want.bound + 1e-9


def test_the_order_of_candidates_changes_nothing(machine):
    for seed in range(6):
        query, vectors = (part + np.float32(0.2) for part in scattered(seed))
        order = np.random.default_rng(seed).permutation(len(vectors))
        here, there = (
            quick._select_natively(machine, some, query, 10, "auto") for some in (vectors, vectors[order])
        )
        assert order[there.indices].tolist() == here.indices.tolist()
        assert there.log_gains.tolist() == here.log_gains.tolist() and there.bound == here.bound


def test_near_copies_are_set_aside_at_once(machine, monkeypatch):
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        query, bases = scattered(seed, n=25)
        copies = bases.repeat(4, axis=0) + 0.02 * rng.standard_normal((100, 64)).astype(np.float32)
        got = quick._select_natively(machine, copies, query, 8, "auto")
        want = with_numpy(monkeypatch, lambda q=query, v=copies: select(v, q, 8))
        assert got is not None and got.near_copies == want.near_copies
        same(want, got)
        found += got.near_copies == 75
    assert found >= 15


@pytest.mark.parametrize("ward", [False, True])
@pytest.mark.parametrize("n", [2, 3, 40, 130])
def test_joins_are_those_of_scipy(machine, n, ward):
    linkage = pytest.importorskip("scipy.cluster.hierarchy").linkage
    points = np.random.default_rng(n).standard_normal((n, 3))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    heights = linkage(apart[np.triu_indices(n, 1)], "ward" if ward else "average")[:, 2]
    if ward:
        apart, heights = apart**2, heights**2
    for limit in (0.0, 1.0001 * float(np.median(heights)), np.inf):
        first, second, made, following = machine.join(apart.copy(), limit, ward=ward)
        below = heights[heights <= limit]
        np.testing.assert_allclose(made, below, rtol=1e-12)
        assert following == pytest.approx(heights[len(below)] if len(below) < n - 1 else np.inf)
        assert (first < second).all() and len(set(second.tolist())) == len(second)


def test_leaves_are_those_of_numpy(machine, monkeypatch):
    for n in (20, 77):
        apart = np.random.default_rng(n).random((n, n))
        apart += apart.T
        np.fill_diagonal(apart, np.inf)
        want = with_numpy(monkeypatch, lambda apart=apart: copies._leaves(apart))
        np.testing.assert_allclose(copies._leaves(apart), want, rtol=1e-12)


def test_steep_pools_are_proved_where_much_is_covered_in_full(machine):
    """Nearly all weight lies on the first pick: what rounding does to that says nothing of the others."""
    n = 80
    rng = np.random.default_rng(1)
    kernel = rng.random((n, n), dtype=np.float32) ** 8
    kernel = np.maximum(kernel, kernel.T)
    np.fill_diagonal(kernel, 1.0)
    log_weights = -0.5 * np.arange(n, dtype=np.float64)
    weights, alone, slack = (np.empty(n, np.float32) for _ in range(3))
    machine.prepare(kernel, log_weights, 1e-5, weights, alone, slack)
    for engine in (machine, dense):
        rows, gains, owners, most = np.zeros(12, np.intp), np.empty(12), np.empty(n, np.intp), np.empty(2)
        assert engine.answer(kernel, weights, alone, slack, 1e-30, 0.0, 12, rows, gains, owners, most) == 12
        exact, covered = kernel.astype(np.float64), kernel[0].astype(np.float64)
        for row, gain in zip(rows[1:], gains[1:], strict=True):
            now = np.maximum(exact - covered, 0) @ np.exp(log_weights)
            assert row == now.argmax() and gain == pytest.approx(now.max(), rel=1e-3)
            covered = np.maximum(covered, exact[row])


def test_a_pick_that_is_too_close_to_call_is_handed_back(machine):
    kernel = np.eye(6, dtype=np.float32)
    weights, alone, slack = np.ones(6, np.float32), np.ones(6, np.float32), np.full(6, 1e-6, np.float32)
    rows, gains = np.empty(3, np.intp), np.empty(3)
    state = (kernel, weights, np.zeros(6, np.float32), alone + slack, slack)
    assert machine.walk(*state, 1e-30, -np.inf, rows, gains) == -1


def test_the_exponential_is_right_to_a_rounding(machine):
    points = np.concatenate([np.linspace(-87, 0, 700), [-1e9, -104, -103.9, -100, -90, -1e-9, 0.0]])
    for x, got in zip(points.astype(np.float32), machine.exp(points.astype(np.float32)), strict=True):
        want = mpmath.exp(mpmath.mpf(float(x)))
        assert abs(got - want) <= max(1.2e-7 * want, mpmath.mpf(2) ** -149)
    assert rounding_32(1e8) > 1.2e-7 * 2


def test_many_threads_may_select_at_once(machine):
    pools = [topical(100, seed=seed, dim=24) for seed in range(40)]
    want = [select(vectors, query, 7, sigma=0.09).indices.tolist() for query, vectors in pools]
    with ThreadPoolExecutor(8) as workers:
        got = workers.map(lambda pool: select(pool[1], pool[0], 7, sigma=0.09).indices.tolist(), pools)
    assert list(got) == want
    asked, candidates = (np.stack([pool[i] for pool in pools]) for i in (0, 1))
    assert [one.indices.tolist() for one in select_many(candidates, asked, 7, sigma=0.09)] == want


def test_a_library_of_another_source_is_not_called(machine, monkeypatch, tmp_path):
    here = Path(compiled.__file__).parent
    (tmp_path / "libmachine.so").write_bytes((here / "libmachine.so").read_bytes())
    monkeypatch.setattr(compiled, "_HERE", tmp_path)
    assert compiled.load() is None  # no source at all
    (tmp_path / "machine.c").write_text("int other;")
    assert compiled.load() is None
    (tmp_path / "machine.c").write_bytes((here / "machine.c").read_bytes())
    assert compiled.load() is not None


@pytest.mark.parametrize("content", [None, b"", b"no library"])
def test_no_library_or_a_broken_one_leaves_numpy(monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / "libmachine.so").write_bytes(content)
    monkeypatch.setattr(compiled, "_HERE", tmp_path)
    assert compiled.load() is None


def test_it_can_be_switched_off(machine):
    code = "from dartboard.selection import compiled; print(compiled.compiled() is None)"
    for value, off in (("0", "True"), ("1", "False")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"DARTBOARD_COMPILED": value},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == off, done.stderr


def test_a_selection_inside_another_gets_room_of_its_own(machine, monkeypatch):
    """As from a signal handler, or whatever else runs between two calls into C."""
    outer, inner = scattered(1), scattered(2)
    want = [select(vectors, query, 7, sigma=0.09) for query, vectors in (outer, inner)]
    between, found = machine.conclude, []

    def interrupted(*arguments):
        if not found:
            found.append(None)
            found[0] = select(inner[1], inner[0], 7, sigma=0.09)
        return between(*arguments)

    monkeypatch.setattr(machine, "conclude", interrupted)
    got = select(outer[1], outer[0], 7, sigma=0.09)
    for one, other in zip(want, (got, found[0]), strict=True):
        assert one.indices.tolist() == other.indices.tolist()
        assert one.gains.tolist() == other.gains.tolist()


def test_rows_that_differ_by_rounding_alone_tell_no_sigma(machine, monkeypatch):
    vectors = np.outer(np.arange(1, 101), [1.0, 2.0, 3.0]).astype(np.float32)
    query = np.array([1.0, 0.0, 0.0], np.float32)
    for run in (lambda: select(vectors, query, 3), lambda: select_many(vectors[None], query[None], 3)[0]):
        for found in (run(), with_numpy(monkeypatch, run)):
            assert found.sigma == (0.09, "fallback")
