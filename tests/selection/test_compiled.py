"""The compiled walk makes the picks of the plain one; it is switched on in a process of its own."""

import subprocess
import sys

import pytest

from dartboard.errors import MissingExtraError
from dartboard.selection import accelerate, compiled

CODE = """
import numpy as np
from dartboard.selection import accelerate, compiled, select
from tests.selection.pools import topical

cases = [
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

plain = [run(case) for case in cases]
accelerate()
accelerate()
assert compiled.compiled_walk() is not None
for case, before in zip(cases, plain, strict=True):
    after = run(case)
    assert after.indices.tolist() == before.indices.tolist(), case
    np.testing.assert_allclose(after.gains, before.gains, rtol=1e-4, atol=1e-6)
    assert abs(after.bound - before.bound) < 0.05
print(len(cases))
"""


def test_compiled_picks_are_the_plain_ones():
    pytest.importorskip("numba")
    done = subprocess.run([sys.executable, "-W", "error", "-c", CODE], capture_output=True, text=True)
    assert done.stdout.strip() == "270", done.stderr


def test_without_numba_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(compiled, "_compiled", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dartboard\[fast\]'"):
        accelerate()


def test_the_source_walks_as_it_is():
    """Uncompiled, the same lines give the same picks: what is compiled is what is read here."""
    import numpy as np

    from dartboard.selection import Dartboard, Limits, from_embeddings
    from tests.selection.pools import topical

    query, vectors = topical(80, seed=3, dim=16)
    pool = from_embeddings(query, vectors, sigma=0.1)
    want = Dartboard().select(pool, Limits(k=6)).indices.tolist()
    state = pool.states()[0]()
    leaders = pool.by_row()[0]
    first = int(pool.relevance[leaders].argmax())
    state.absorb(first)
    bounds = state.ceilings(state.alone(), slice(None))
    bounds[first] = -np.inf
    walk = compiled._walk_with(compiled._gain)
    rows, gains = np.empty(5, dtype=np.intp), np.empty(5)

    def go(stop_below=0.0, smallest=0.0, slack=state._slack):
        covered = state._covered.copy()
        arrays = (state._kernel, state._weights, covered, bounds.copy(), slack)
        return walk(*arrays, smallest, stop_below, rows, gains)

    assert go() == 5
    assert [int(leaders[row]) for row in [first, *rows]] == want
    assert go(stop_below=float(gains[3]) * 1.0001) == 3
    assert go(smallest=1e9) == -1, "uncertain after no pick"
    assert go(slack=10 * state._alone) == -1
