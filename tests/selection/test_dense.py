"""The walk in bursts makes the picks of the definition, and says where it cannot prove one."""

import numpy as np
import pytest

from dartboard.selection import dense


def board(n, *, seed=0, targets=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    kernel = rng.random((n, targets or n)).astype(dtype) ** 6
    return kernel, rng.random(targets or n).astype(dtype)


def brute(kernel, weights, covered, count):
    picks, gains = [], []
    for _ in range(count):
        now = np.maximum(kernel - covered, 0) @ weights
        picks.append(int(now.argmax()))
        gains.append(float(now.max()))
        covered = np.maximum(covered, kernel[picks[-1]])
    return picks, gains, covered


def run(kernel, weights, count, *, rounding=1e-13, smallest=1e-300, stop_below=-np.inf):
    alone = kernel @ weights
    slack = alone * rounding
    covered, bounds = np.zeros_like(weights), alone + slack
    rows, gains = np.empty(count, dtype=np.intp), np.empty(count)
    made = dense.walk(kernel, weights, covered, bounds, slack, smallest, stop_below, rows, gains)
    return made, rows, gains, covered, bounds


@pytest.mark.parametrize(("n", "targets", "count"), [(5, 9, 3), (40, 40, 20), (150, 60, 40), (150, 300, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_picks_and_gains_of_the_definition(n, targets, count, dtype):
    kernel, weights = board(n, seed=n + count, targets=targets, dtype=dtype)
    picks, want, _ = brute(kernel, weights, np.zeros_like(weights), count)
    made, rows, gains, covered, bounds = run(kernel, weights, count, rounding=1e-6)
    proved = made if made >= 0 else -made - 1
    assert proved >= min(count, 2)
    assert rows[:proved].tolist() == picks[:proved]
    np.testing.assert_allclose(gains[:proved], want[:proved], rtol=1e-4)
    np.testing.assert_array_equal(covered, kernel[rows[:proved]].max(axis=0))
    assert (bounds[rows[:proved]] == -np.inf).all()
    left = np.delete(np.arange(n), rows[:proved])
    now = np.maximum(kernel[left] - covered, 0) @ weights
    assert (bounds[left] >= now * (1 - 1e-6)).all(), "bounds stay bounds"


def test_stops_before_a_small_gain():
    kernel, weights = board(60, seed=2)
    picks, gains, _ = brute(kernel, weights, np.zeros(60), 12)
    made, rows, _, covered, _ = run(kernel, weights, 12, stop_below=gains[4] * 1.0001)
    assert made == 4 and rows[:4].tolist() == picks[:4]
    np.testing.assert_array_equal(covered, kernel[picks[:4]].max(axis=0))


def test_a_tie_is_not_decided():
    kernel, weights = board(60, seed=3)
    picks, _, _ = brute(kernel, weights, np.zeros(60), 3)
    twin = next(row for row in range(60) if row not in picks)
    kernel[twin] = kernel[picks[2]]
    made, rows, *_ = run(kernel, weights, 5)
    assert made == -3 and rows[:2].tolist() == picks[:2]


def test_a_gain_outside_the_number_format_is_not_believed():
    assert run(*board(10), 4, smallest=1e9)[0] == -1


def test_rows_outside_a_burst_are_not_forgotten():
    """Many rows cover the same targets a lot and one, with a smaller bound than theirs, covers another."""
    kernel = np.zeros((100, 2))
    kernel[:99, 0] = np.linspace(0.9, 1.0, 99)
    kernel[99, 1] = 0.5
    made, rows, *_ = run(kernel, np.ones(2), 2)
    assert made in (2, -2) and rows[0] == 98
    assert made == -2 or rows[1] == 99
