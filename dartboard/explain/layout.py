"""A map of the candidates around the query: distances to the query are exact, angles are fitted.

The query is at the origin, and candidate i on the circle of radius ``r_i``, its distance to the query. The
angles are chosen such that lengths on the map, ``d_ij``, are proportional to the distances ``D_ij`` between
candidates. The quality is Kruskal's stress-1 of ratio scaling,

    stress = min_b sqrt( Σ_{i<j} (d_ij - b·D_ij)² / Σ_{i<j} d_ij² ).

Hundreds of dimensions do not fit on circles with one unit: with b = 1 all candidates crowd on an arc. So b is
chosen first, as the value for random angles on the same circles, within [1/2, 2]. The first map has the
angles of classical scaling around the query (Torgerson, 1952): the two largest eigenvectors of the inner
products ``(r_i² + r_j² - b²D_ij²) / 2``. Then all candidates are moved together by majorisation (SMACOF;
de Leeuw, 1977): one step is ``Y = mean(X) + B(X) X / n``, with B the matrix of the Guttman transform, and
every point moves back along its ray to its circle. No step increases the sum of squared errors.

Hand-written, because scikit-learn's MDS cannot keep points on given circles.
"""

from dataclasses import dataclass

import numpy as np

from dartboard.blas import threads_for
from dartboard.deadline import check
from dartboard.types import FloatArray

KIND = "radial MDS"
STEPS = 60
_LEAST_UNIT, _LARGEST_UNIT = 0.5, 2.0
_FEW = 16
"""Up to this many candidates, both units are tried: averages over few points are unreliable."""

_TINY = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Layout:
    """``points``, ``(n, 2)``, the outermost at radius 1.

    A distance of 1 to the query always has the length ``radius_of_one``; a distance of 1 between candidates
    has on average the length ``length_of_one``, as far as ``stress`` allows.
    """

    points: FloatArray
    stress: float
    radius_of_one: float
    length_of_one: float


def radial_layout(to_query: FloatArray, between: FloatArray) -> Layout:
    """The map for distances to the query, ``(n,)``, and between candidates, ``(n, n)``; deterministic.

    The first candidate points straight up.
    """
    if not len(to_query):
        return Layout(points=np.zeros((0, 2)), stress=0.0, radius_of_one=1.0, length_of_one=1.0)
    farthest = float(to_query.max(initial=0.0))
    scale = 1.0 / farthest if farthest > 0 else 1.0
    radius, apart = to_query * scale, between * scale
    maps = []
    fitting = _unit(radius, apart)
    with threads_for(len(radius)):
        for unit in (1.0, fitting) if len(radius) <= _FEW else (fitting,):
            points = _on_circles(_settled(_start(radius, unit * apart), radius, unit * apart), radius)
            maps.append((*kruskal_stress(points, apart), _upright(points)))
    stress, length, points = min(maps, key=lambda made: made[0])
    return Layout(points=points, stress=stress, radius_of_one=scale, length_of_one=length * scale)


def kruskal_stress(points: FloatArray, distances: FloatArray) -> tuple[float, float]:
    """Stress-1 of a map, and the best b; (0, 1) if there is nothing to compare."""
    shown = _lengths(points[:, None] - points[None, :])
    lengths, wanted = float((shown**2).sum()), float((distances**2).sum())
    if lengths <= _TINY or wanted <= _TINY:
        return float((lengths <= _TINY) != (wanted <= _TINY)), 1.0
    both = float((shown * distances).sum())
    return float(np.sqrt(max(0.0, 1.0 - both * both / (lengths * wanted)))), both / wanted


def _unit(radius: FloatArray, apart: FloatArray) -> float:
    """The b of random angles: the mean of ``sqrt(r² + s² - 2rs cos φ)`` over φ, by eight angles."""
    wanted = float(apart.sum())
    if wanted <= _TINY:
        return 1.0
    cosines = np.cos(np.pi * (np.arange(8) + 0.5) / 8)
    squares, products = radius[:, None] ** 2 + radius[None, :] ** 2, 2.0 * np.outer(radius, radius)
    chords = np.mean([np.sqrt(np.maximum(squares - products * c, 0.0)) for c in cosines], axis=0)
    np.fill_diagonal(chords, 0.0)
    return float(np.clip(chords.sum() / wanted, _LEAST_UNIT, _LARGEST_UNIT))


def _start(radius: FloatArray, apart: FloatArray) -> FloatArray:
    """``(n, 2)``: on the circles, with the angles of classical scaling."""
    products = (radius[:, None] ** 2 + radius[None, :] ** 2 - apart**2) / 2.0
    values, vectors = np.linalg.eigh(products)
    return _on_circles(vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0)), radius)


def _settled(points: FloatArray, radius: FloatArray, apart: FloatArray) -> FloatArray:
    """Move all points together, by constrained majorisation."""
    points, radius, apart = (each.astype(np.float32) for each in (points, radius, apart))
    squares = radius[:, None] ** 2 + radius[None, :] ** 2
    ratio = np.empty_like(apart)
    for step in range(STEPS):
        if step % 16 == 0:
            check()
        np.subtract(squares, 2.0 * (points @ points.T), out=ratio)
        np.divide(apart, np.sqrt(np.maximum(ratio, 1e-10, out=ratio), out=ratio), out=ratio)
        moved = ratio.sum(axis=1)[:, None] * points - ratio @ points
        points = _on_circles(moved / np.float32(len(points)) + points.mean(axis=0), radius)
    return points.astype(np.float64)


def _on_circles(points: FloatArray, radius: FloatArray) -> FloatArray:
    """Each point moved along its ray to its circle; one at the origin goes straight up."""
    lengths = _lengths(points)
    rays = np.where(lengths[:, None] > _TINY, points, np.array((0.0, 1.0), points.dtype))
    placed: FloatArray = rays * (radius / np.where(lengths > _TINY, lengths, 1.0))[:, None]
    return placed


def _upright(points: FloatArray) -> FloatArray:
    """Rotate so that the first candidate points up, and mirror so that most weight is on the right."""
    x, y = points[0] if _lengths(points[0]) > _TINY else (0.0, 1.0)
    turned: FloatArray = points @ np.array([[y, x], [-x, y]]) / np.hypot(x, y)
    return turned * (np.sign(turned[:, 0].sum()) or 1.0, 1.0)


def _lengths(vectors: FloatArray) -> FloatArray:
    lengths: FloatArray = np.sqrt((vectors * vectors).sum(axis=-1))
    return lengths
