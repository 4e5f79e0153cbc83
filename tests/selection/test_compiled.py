"""What is compiled makes the picks of what is not; it is switched on in a process of its own."""

import importlib.util
import subprocess
import sys

import mpmath
import numpy as np
import pytest

from dartboard.errors import MissingExtraError
from dartboard.selection import (
    Dartboard,
    Limits,
    accelerate,
    compiled,
    dense,
    from_embeddings,
    select,
    select_many,
)
from dartboard.selection.coverage import rounding_32
from tests.selection.pools import topical

CODE = """
import numpy as np
from dartboard.selection import accelerate, compiled, halves, select, select_many
from tests.selection import oracle
from tests.selection.pools import topical
from tests.selection.test_exactness import near_ties

cases = [
    (n, k, sigma, dtype, copies, share)
    for n in (12, 90, 400)
    for k in (1, 10, 40)
    for sigma in (1e-3, 0.02, 0.09, 0.3, 5.0)
    for dtype in (np.float32, np.float64)
    for copies, share in ((0, 0.0), (1, 0.0), (0, 0.2))
]
ties = [(query, vectors) for seed in range(6) for query, vectors in near_ties(seed)]

def run(case):
    n, k, sigma, dtype, copies, share = case
    query, vectors = topical(n, seed=k, dim=48, copies=copies, dtype=dtype)
    return select(vectors, query, k, sigma=sigma, min_gain_share=share)

def same(before, after, case=None):
    assert after.indices.tolist() == before.indices.tolist(), case
    np.testing.assert_allclose(after.gains, before.gains, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(after.coverage, before.coverage, rtol=1e-4)
    assert abs(after.bound - before.bound) < 0.05
    assert (after.owners != before.owners).mean() <= 0.01

plain = [run(case) for case in cases]
tied = [select(v.astype(np.float64), q, 2, sigma=0.05).indices.tolist() for q, v in ties]
accelerate()
accelerate()
assert compiled.compiled() is not None

def check():
    for case, before in zip(cases, plain, strict=True):
        same(before, run(case), case)
    assert [select(v, q, 2, sigma=0.05).indices.tolist() for q, v in ties] == tied
    for sigma in (0.03, 0.09, 1.0):
        query, vectors = topical(70, seed=1, dim=12)
        picks, _, _ = oracle.greedy(*oracle.scaled_cosine(query, vectors), sigma, 12)
        assert select(vectors, query, 12, sigma=sigma).indices.tolist() == picks
    query, vectors = topical(300, seed=5, copies=1, dim=24)
    order = np.random.default_rng(1).permutation(600)
    here, there = (select(v, query, 12, sigma=0.09) for v in (vectors, vectors[order]))
    assert here.log_gains.tolist() == there.log_gains.tolist() and here.bound == there.bound
    pools = [topical(80, seed=seed, dim=24) for seed in range(60)]
    asked, candidates = (np.stack([pool[i] for pool in pools]) for i in (0, 1))
    together = select_many(candidates, asked, 7, sigma=0.09)
    assert len(together) == 60
    for one, query, vectors in zip(together, asked, candidates, strict=True):
        same(select(vectors, query, 7, sigma=0.09), one)
    candidates[3, 5] = candidates[3, 9]
    candidates[4] = candidates[4, :1]
    for one, query, vectors in zip(select_many(candidates, asked, 7), asked, candidates, strict=True):
        assert one.indices.tolist() == select(vectors, query, 7).indices.tolist()
    candidates[7, 2] = np.nan
    try:
        select_many(candidates, asked, 7)
    except ValueError as error:
        assert "embeddings row 2" in str(error)
    query, vectors = topical(600, seed=2, dim=48)
    for sigma in (0.02, 0.04, 0.06):
        here, there = (select(v, query, 8, sigma=sigma) for v in (vectors, vectors.astype(np.float64)))
        assert here.indices.tolist() == there.indices.tolist()

check()
halves._syrk = lambda: None  # as with another BLAS
check()
print(len(cases), len(ties) > 20)
"""


def test_compiled_picks_are_the_plain_ones_with_any_blas():
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True)
    assert done.stdout.strip() == "270 True", done.stderr


def test_without_numba_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(compiled, "_machine", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dartboard\[fast\]'"):
        accelerate()


@pytest.fixture
def machine(monkeypatch):
    """The module as it is written, uncompiled: what is compiled is what is read here."""
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", True)
    spec = importlib.util.find_spec("dartboard.selection.machine")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_exponential_is_right_to_a_rounding(machine):
    points = np.concatenate([np.linspace(-87, 0, 700), [-1e9, -104, -103.9, -100, -90, -1e-9, 0.0]])
    for x in points.astype(np.float32):
        want = mpmath.exp(mpmath.mpf(float(x)))
        assert abs(machine.exp(x) - want) <= max(1.2e-7 * want, mpmath.mpf(2) ** -149)
    assert rounding_32(1e8) > 1.2e-7 * 2


def test_the_source_walks_as_it_is(machine, monkeypatch):
    query, vectors = topical(80, seed=3, dim=16)
    want = select(vectors, query, 6, sigma=0.1)
    monkeypatch.setattr(compiled, "_machine", machine)
    with np.errstate(over="ignore"):  # fingerprints are sums modulo 2^64
        got = select(vectors, query, 6, sigma=0.1)
    assert got.indices.tolist() == want.indices.tolist()
    np.testing.assert_allclose(got.gains, want.gains, rtol=1e-5)
    assert got.owners.tolist() == want.owners.tolist()
    assert got.bound == pytest.approx(want.bound, abs=0.01)
    compiled.warm_up(machine)
    together = select_many(np.stack([vectors] * 2), np.stack([query] * 2), 6, sigma=0.1)
    assert together[1].indices.tolist() == want.indices.tolist()
    np.testing.assert_allclose(together[1].gains, want.gains, rtol=1e-5)
    assert together[1].owners.tolist() == want.owners.tolist()
    assert together[1].bound == pytest.approx(want.bound, abs=0.01)
    with np.errstate(over="ignore"):
        pool = from_embeddings(query, vectors, sigma=0.1)
    half = Dartboard().select(pool, Limits(k=6, must_include=[3]))
    assert half.indices[0] == 3 and len(half) == 6


@pytest.mark.parametrize("engine", ["dense", "machine"])
def test_an_answer_says_where_it_is_unclear(engine, request):
    engine = dense if engine == "dense" else request.getfixturevalue("machine")
    kernel = np.exp(-8 * np.abs(np.subtract.outer(*[np.linspace(0, 1, 70) ** 2] * 2)))
    weights = np.linspace(1, 0.5, 70) ** 2
    alone = kernel @ weights

    def ask(count=8, *, rounding=1e-13, smallest=1e-300, stop_share=0.0):
        rows, gains, most = np.zeros(count, np.intp), np.empty(count), np.empty(2)
        owners = np.empty(70, np.intp)
        arrays = (kernel, weights, alone, alone * rounding, smallest, stop_share, count)
        return engine.answer(*arrays, rows, gains, owners, most), rows, gains, owners, most

    made, rows, gains, owners, most = ask()
    assert made == 8
    covered = np.zeros(70)
    for row, gain in zip(rows, gains, strict=True):
        now = np.maximum(kernel - covered, 0) @ weights
        assert gain == pytest.approx(now[row])
        assert row == 0 or row == now.argmax()
        covered = np.maximum(covered, kernel[row])
    np.testing.assert_array_equal(owners, np.where(covered >= 0.5, kernel[rows].argmax(axis=0), -1))
    assert most[0] == pytest.approx(np.sort(alone)[-8:].sum())
    left = np.maximum(kernel - covered, 0) @ weights
    assert np.sort(left)[-8:].sum() * 0.999 <= most[1] < most[0]
    assert ask(stop_share=gains[4] / gains[0] * 1.001)[0] == 4
    assert ask(smallest=1e9)[0] < 0, "the first gain is out of range"
    assert ask(smallest=gains[5])[0] < 0, "a later gain is out of range"
    assert ask(rounding=0.5)[0] < 0, "no lead exceeds rounding"
    assert ask(1)[0] == 1


def test_equal_gains_are_unclear(machine):
    kernel = np.eye(40)
    rows, gains = np.zeros(5, np.intp), np.empty(5)
    bounds = np.ones(40)
    made = machine.walk(kernel, np.ones(40), np.zeros(40), bounds, bounds * 1e-13, 0.0, -1.0, rows, gains)
    assert made == -1
    nothing = np.full(40, -np.inf)
    assert machine.walk(kernel, np.ones(40), np.zeros(40), nothing, bounds, 0.0, -1.0, rows, gains) == -1
