"""The map: true radii, angles as good as they get, and nothing left to chance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.manifold import smacof

from dartboard.explain.layout import kruskal_stress, radial_layout
from dartboard.selection.kernel import distances
from dartboard.utils import unit_rows
from tests.examples import examples
from tests.selection.pools import topical


def of_vectors(query, rows):
    unit = unit_rows(np.asarray(rows), np.float64)
    cosine = np.einsum("ij,j->i", unit, unit_rows(np.asarray(query)[None], np.float64)[0])
    return np.maximum(0.5 - 0.5 * cosine, 0.0), distances(unit, unit, "scaled_cosine")


@st.composite
def candidates(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n, dim = draw(st.integers(1, 30)), draw(st.integers(1, 6))
    rows = rng.standard_normal((n, dim))
    for at in range(n):
        if rng.random() < draw(st.sampled_from([0.0, 0.3, 1.0])):
            rows[at] = rows[int(rng.integers(n))]
    query = rows[0] if draw(st.booleans()) else rng.standard_normal(dim)
    return of_vectors(query, rows)


@given(candidates())
@examples(80)
def test_the_distance_to_the_query_is_true(given_distances):
    to_query, between = given_distances
    found = radial_layout(to_query, between)
    assert np.isfinite(found.points).all() and 0.0 <= found.stress <= 1.0
    assert np.isfinite([found.radius_of_one, found.length_of_one]).all()
    radius = np.linalg.norm(found.points, axis=1)
    assert radius == pytest.approx(to_query * found.radius_of_one, abs=1e-12)
    assert radius.max() == pytest.approx(1.0 if to_query.max() > 0 else 0.0)
    again = radial_layout(to_query, between)
    assert np.array_equal(found.points, again.points)
    for one, other in np.argwhere(between <= 0.0):
        assert np.linalg.norm(found.points[one] - found.points[other]) < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_the_order_of_candidates_changes_only_the_direction_that_is_up(seed):
    to_query, between = of_vectors(*topical(40, seed=seed))
    order = np.random.default_rng(seed).permutation(40)
    one, other = (
        radial_layout(to_query, between),
        radial_layout(to_query[order], between[np.ix_(order, order)]),
    )
    assert one.stress == pytest.approx(other.stress, abs=0.02)


def test_few_points_are_placed_exactly():
    one = radial_layout(np.array([0.3]), np.zeros((1, 1)))
    assert one.points == pytest.approx(np.array([[0.0, 1.0]])) and one.stress == 0.0
    two = radial_layout(np.array([0.3, 0.4]), np.array([[0.0, 0.5], [0.5, 0.0]]))
    assert two.stress == pytest.approx(0.0, abs=1e-6)
    places = np.array([[0.0, 0.2], [0.3, 0.1], [-0.2, -0.3]])
    between = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    three = radial_layout(np.linalg.norm(places, axis=1), between)
    assert three.stress < 0.02
    shown = np.linalg.norm(three.points[:, None] - three.points[None, :], axis=2)
    assert shown == pytest.approx(between * three.length_of_one, abs=0.06)


def test_a_plane_is_found_again():
    places = np.random.default_rng(0).standard_normal((60, 2))
    between = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    found = radial_layout(np.linalg.norm(places, axis=1), between)
    assert found.stress < 0.1


def test_no_candidates_all_alike_and_all_at_the_query():
    assert radial_layout(np.zeros(0), np.zeros((0, 0))).points.shape == (0, 2)
    alike = radial_layout(np.full(5, 0.2), np.zeros((5, 5)))
    assert alike.points == pytest.approx(np.array([[0.0, 1.0]] * 5)) and alike.stress == 0.0
    here = radial_layout(np.zeros(4), np.zeros((4, 4)))
    assert not here.points.any() and here.stress == 0.0
    apart = radial_layout(np.zeros(2), np.array([[0.0, 0.5], [0.5, 0.0]]))  # no vectors are like that
    assert not apart.points.any() and apart.stress == 1.0


@pytest.mark.parametrize(("n", "copies"), [(100, 0), (30, 3), (250, 0)])
def test_the_constraint_costs_little_stress(n, copies):
    """Against SMACOF, which may put candidates anywhere: docs/inspection.md has the figures."""
    to_query, between = of_vectors(*topical(n, copies=copies, noise=0.25))
    free, _ = smacof(between, n_components=2, n_init=4, max_iter=300, random_state=0, normalized_stress=False)
    best, _ = kruskal_stress(free, between)
    found = radial_layout(to_query, between)
    assert best - 0.01 <= found.stress <= best + 0.06
    rays = np.random.default_rng(0).uniform(0, 2 * np.pi, len(to_query))
    chance = to_query[:, None] * np.stack((np.cos(rays), np.sin(rays)), axis=1)
    assert found.stress < kruskal_stress(chance, between)[0] - 0.04


def test_stress_does_not_depend_on_scale():
    points = np.random.default_rng(1).standard_normal((9, 2))
    between = np.linalg.norm(points[:, None] - points[None, :], axis=2)
    assert kruskal_stress(points, between) == pytest.approx((0.0, 1.0), abs=1e-6)
    assert kruskal_stress(3.0 * points, between) == pytest.approx((0.0, 3.0), abs=1e-6)
    noisy = between * np.random.default_rng(2).uniform(0.5, 1.5, between.shape)
    assert kruskal_stress(points, noisy)[0] == pytest.approx(kruskal_stress(7 * points, noisy)[0])
