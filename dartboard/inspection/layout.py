"""A map of the candidates around the query: the distance to the query is true, angles are fitted.

The query stands at the origin and candidate i on the circle of radius ``r_i``, its own distance to the
query. What is left to choose are angles, such that distances on the map, ``d_ij``, come near the distances
``D_ij`` of the candidates to one another. Quality is Kruskal's stress-1,

    stress = sqrt( Σ_{i<j} (d_ij - D_ij)² / Σ_{i<j} d_ij² ).

It is lowered by majorisation (SMACOF; de Leeuw, 1977) under the constraint: one step is
``Y = mean(X) + B(X) X / n``, with B the Guttman transform's matrix, and then every point goes back along its
ray to its circle. No step makes the sum of squared errors larger. Several starts, the first from classical
scaling and the others turned by seeded noise, are taken together, and the best is finished.
"""

from dataclasses import dataclass

import numpy as np

from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from dartboard.types import FloatArray, IntArray

KIND = "radial MDS"
STARTS = 4
FIRST_STEPS, LAST_STEPS = 12, 60
_SETTLED = 1e-5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """``points``, ``(n, 2)``, the outermost at 1; a distance of 1 to the query is ``radius_of_one`` long."""

    points: FloatArray
    stress: float
    radius_of_one: float


def radial_layout(to_query: FloatArray, between: FloatArray, *, seed: int = 0) -> Layout:
    """The map for distances to the query, ``(n,)``, and between candidates, ``(n, n)``; the same every time.

    Candidates at distance 0 from one another that are equally far from the query share a place. The first
    candidate stands straight up.
    """
    radius = np.asarray(to_query, dtype=np.float64)
    apart = np.asarray(between, dtype=np.float64)
    if radius.ndim != 1 or apart.shape != (len(radius),) * 2:
        raise InvalidInputError(f"{radius.shape} distances to the query do not go with {apart.shape} between")
    if not (np.isfinite(radius).all() and np.isfinite(apart).all()):
        raise InvalidInputError("distances must be finite: found NaN or infinity")
    if not len(radius):
        return Layout(points=np.zeros((0, 2)), stress=0.0, radius_of_one=1.0)
    scale = 1.0 / radius.max() if radius.max() > 0 else 1.0
    leaders, member_of = _distinct(radius, apart)
    counts = np.bincount(member_of).astype(np.float64)
    angles = _angles(radius[leaders] * scale, apart[np.ix_(leaders, leaders)] * scale, counts, seed)[
        member_of
    ]
    points = _upright(radius * scale, angles)
    return Layout(points=points, stress=kruskal_stress(points, apart * scale), radius_of_one=float(scale))


def kruskal_stress(points: FloatArray, distances: FloatArray) -> float:
    """Stress-1 of a map; 0 where all points coincide as they should."""
    shown = _lengths(points[:, None] - points[None, :])
    total = float((shown**2).sum())
    error = float(((shown - distances) ** 2).sum())
    return float(np.sqrt(error / total)) if total > 0 else float(error > 0)


def _distinct(radius: FloatArray, apart: FloatArray) -> tuple[IntArray, IntArray]:
    """One candidate for each place on the map, and for every candidate which of these it is."""
    same = (apart <= 0.0) & (radius[:, None] == radius[None, :])
    np.fill_diagonal(same, True)
    leaders, member_of = np.unique(same.argmax(axis=1), return_inverse=True)
    return leaders, member_of.reshape(-1)


def _angles(radius: FloatArray, apart: FloatArray, counts: FloatArray, seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    first = _classical_angles(radius, apart)
    noise = rng.normal(scale=np.linspace(0.02, 1.5, STARTS)[:, None], size=(STARTS, len(radius)))
    points = _on_circles(radius, first + noise)
    for _ in range(FIRST_STEPS):
        points = _step(points, radius, apart, counts)
    errors = [_error(each, apart, counts) for each in points]
    best = points[[int(np.argmin(errors))]]
    error = min(errors)
    for round_ in range(LAST_STEPS):
        best = _step(best, radius, apart, counts)
        if round_ % 10 == 9:
            check()
            now = _error(best[0], apart, counts)
            if error - now <= _SETTLED * error:
                break
            error = now
    angles: FloatArray = np.arctan2(best[0, :, 1], best[0, :, 0])
    return angles


def _classical_angles(radius: FloatArray, apart: FloatArray) -> FloatArray:
    """Angles of classical scaling with the query as the origin: ``b_ij = (r_i² + r_j² - D_ij²) / 2``."""
    inner = (radius[:, None] ** 2 + radius[None, :] ** 2 - apart**2) / 2.0
    _, vectors = np.linalg.eigh(inner)
    axes = vectors[:, -2:]
    if axes.shape[1] < 2:
        return np.zeros(len(radius))
    axes = axes * np.where(axes.sum(axis=0) < 0, -1.0, 1.0)
    angles: FloatArray = np.arctan2(axes[:, 0], axes[:, 1])
    return angles


def _step(points: FloatArray, radius: FloatArray, apart: FloatArray, counts: FloatArray) -> FloatArray:
    """One step of majorisation for each start, ``(s, n, 2)``."""
    shown = _lengths(points[:, :, None] - points[:, None])
    ratio = np.divide(apart, shown, out=np.zeros_like(shown), where=shown > 1e-12) * counts
    total = counts.sum()
    moved = ratio.sum(axis=2)[..., None] * points - ratio @ points
    moved = (moved + (counts @ points)[:, None]) / total
    length = _lengths(moved)
    usable = length > 1e-12
    ray = np.where(usable[..., None], moved, points)
    length = np.where(usable, length, _lengths(points))
    placed: FloatArray = ray * (radius / np.where(length > 1e-12, length, 1.0))[..., None]
    return placed


def _error(points: FloatArray, apart: FloatArray, counts: FloatArray) -> float:
    shown = _lengths(points[:, None] - points[None, :])
    return float(counts @ (shown - apart) ** 2 @ counts)


def _on_circles(radius: FloatArray, angles: FloatArray) -> FloatArray:
    points: FloatArray = np.stack((radius * np.cos(angles), radius * np.sin(angles)), axis=-1)
    return points


def _upright(radius: FloatArray, angles: FloatArray) -> FloatArray:
    """Turned so that the first candidate points up, and mirrored so that most of the rest is on the right."""
    turned = angles - angles[0]
    side = -1.0 if np.sin(turned).sum() > 0 else 1.0
    return _on_circles(radius, np.pi / 2 + side * turned)


def _lengths(vectors: FloatArray) -> FloatArray:
    lengths: FloatArray = np.hypot(vectors[..., 0], vectors[..., 1])
    return lengths
