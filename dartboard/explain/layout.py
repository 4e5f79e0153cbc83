"""A map of the candidates around the query: distances to the query are exact, angles are fitted.

The query is at the origin, and candidate i on the circle of radius ``r_i``, its distance to the query. The
angles are chosen such that lengths on the map, ``d_ij``, are proportional to the distances ``D_ij`` between
candidates. The quality is Kruskal's stress-1 of ratio scaling,

    stress = min_b sqrt( Σ_{i<j} (d_ij - b·D_ij)² / Σ_{i<j} d_ij² ).

Hundreds of dimensions do not fit on circles with one unit: with b = 1 all candidates crowd on an arc, and the
stress is a third higher. So b is chosen first, as the value for random angles on the same circles, within
[1/2, 2]. Then candidates are placed one by one, each in the best of several directions, placed a second time,
and moved together by majorisation (SMACOF; de Leeuw, 1977): one step is ``Y = mean(X) + B(X) X / n``, with B
the matrix of the Guttman transform, and every point moves back along its ray to its circle. No such step
increases the sum of squared errors. If there is time, this is done twice, farthest first and nearest first,
and the better map is kept.

Hand-written, because scikit-learn's MDS cannot keep points on given circles.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from dartboard.types import FloatArray, IntArray

KIND = "radial MDS"
DIRECTIONS = 36
STEPS = 40
_LEAST_UNIT, _LARGEST_UNIT = 0.5, 2.0
_FEW = 16
"""Up to this many places, both units are tried: averages over few points are unreliable."""

_MANY = 160
"""Above this many places, there is only one start: more cost time and gain a hundredth."""

_SAME = 1e-9
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

    Candidates at distance 0 from one another and equally far from the query share a place. The first
    candidate points straight up.
    """
    radius, apart = _checked(to_query, between)
    if not len(radius):
        return Layout(points=np.zeros((0, 2)), stress=0.0, radius_of_one=1.0, length_of_one=1.0)
    scale = 1.0 / float(radius.max()) if radius.max() > 0 else 1.0
    radius, apart = radius * scale, apart * scale
    leaders, place_of = _places(radius, apart)
    counts = np.bincount(place_of)
    circles, wanted = radius[leaders], apart[np.ix_(leaders, leaders)]
    far_first = np.lexsort((leaders, -circles))
    orders = (far_first, far_first[::-1])[: 1 if len(leaders) > _MANY else 2]
    maps = [
        _upright(radius, _directed(circles, unit * wanted, counts, order)[place_of])
        for unit, order in product(_units(circles, wanted, counts), orders)
    ]
    judged = [kruskal_stress(points, apart) for points in maps]
    best = min(range(len(judged)), key=lambda at: judged[at][0])
    stress, unit = judged[best]
    return Layout(points=maps[best], stress=stress, radius_of_one=scale, length_of_one=unit * scale)


def kruskal_stress(points: FloatArray, distances: FloatArray) -> tuple[float, float]:
    """Stress-1 of a map, and the best b; (0, 1) if there is nothing to compare."""
    shown = _lengths(points[:, None] - points[None, :])
    lengths, wanted = float((shown**2).sum()), float((distances**2).sum())
    if lengths <= _TINY or wanted <= _TINY:
        return float((lengths <= _TINY) != (wanted <= _TINY)), 1.0
    both = float((shown * distances).sum())
    return float(np.sqrt(max(0.0, 1.0 - both * both / (lengths * wanted)))), both / wanted


def _checked(to_query: FloatArray, between: FloatArray) -> tuple[FloatArray, FloatArray]:
    radius = np.asarray(to_query, dtype=np.float64)
    apart = np.asarray(between, dtype=np.float64)
    if radius.ndim != 1 or apart.shape != (len(radius),) * 2:
        raise InvalidInputError(f"{radius.shape} distances to the query do not fit {apart.shape} between")
    for name, values in (("to the query", radius), ("between candidates", apart)):
        if not np.isfinite(values).all() or (values < 0).any():
            raise InvalidInputError(f"distances {name} must be finite numbers >= 0")
    return radius, apart


def _places(radius: FloatArray, apart: FloatArray) -> tuple[IntArray, IntArray]:
    """One candidate for each place on the map, and the place of every candidate."""
    same = (apart <= _SAME) & (np.abs(radius[:, None] - radius[None, :]) <= _SAME)
    np.fill_diagonal(same, True)
    leaders, place_of = np.unique(same.argmax(axis=1), return_inverse=True)
    return leaders, place_of.reshape(-1)


def _units(radius: FloatArray, apart: FloatArray, counts: IntArray) -> list[float]:
    """Values of b to try: that of random angles, and 1 if there are few points."""
    weights = np.outer(counts, counts).astype(np.float64)
    np.fill_diagonal(weights, 0.0)
    wanted = float((weights * apart).sum())
    if wanted <= _TINY:
        return [1.0]
    # The mean of sqrt(r² + s² - 2rs cos φ) over φ, by eight angles.
    cosines = np.cos(np.pi * (np.arange(8) + 0.5) / 8)
    squares, products = radius[:, None] ** 2 + radius[None, :] ** 2, 2.0 * np.outer(radius, radius)
    chords = np.mean([np.sqrt(np.maximum(squares - products * c, 0.0)) for c in cosines], axis=0)
    unit = float(np.clip((weights * chords).sum() / wanted, _LEAST_UNIT, _LARGEST_UNIT))
    return [1.0, unit] if len(radius) <= _FEW else [unit]


def _directed(radius: FloatArray, apart: FloatArray, counts: IntArray, order: IntArray) -> FloatArray:
    """``(n, 2)``: unit directions for which lengths approximate ``apart``."""
    single = np.float32
    table = _Table(radius.astype(single), apart.astype(single), counts.astype(single))
    table.put_down(order)
    table.look_again(order)
    table.settle(STEPS)
    directions = table.points.astype(np.float64)
    length = _lengths(directions)
    directions[length <= _TINY] = (0.0, 1.0)
    found: FloatArray = directions / np.where(length > _TINY, length, 1.0)[:, None]
    return found


class _Table:
    """Points on their circles during placement; float32 is precise enough for a picture."""

    def __init__(self, radius: FloatArray, apart: FloatArray, counts: FloatArray) -> None:
        self.points = np.zeros((len(radius), 2), np.float32)
        self._radius, self._squares = radius, radius * radius
        self._apart, self._counts = apart, counts
        self._wanted = apart * counts
        angles = 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        self._rays = np.stack((np.cos(angles), np.sin(angles)), axis=1).astype(np.float32)

    def put_down(self, order: IntArray) -> None:
        """Place each point where it fits best among those before it."""
        points, squares = self.points[order], self._squares[order]
        wanted, counts = self._wanted[np.ix_(order, order)], self._counts[order]
        for place, point in enumerate(order):
            costs = self._costs(
                self._radius[point], points[:place], squares[:place], wanted[place, :place], counts[:place]
            )
            points[place] = self._rays[int(costs.argmin())] * self._radius[point]
        self.points[order] = points

    def look_again(self, order: IntArray) -> None:
        """Place each point where it fits best among all others."""
        for point in order:
            if point % 64 == 0:
                check()
            counts = self._counts.copy()
            counts[point] = 0.0
            costs = self._costs(self._radius[point], self.points, self._squares, self._wanted[point], counts)
            self.points[point] = self._rays[int(costs.argmin())] * self._radius[point]

    def settle(self, steps: int) -> None:
        """Move all points together, by constrained majorisation."""
        total = self._counts.sum()
        sums = self._squares[:, None] + self._squares[None, :]
        ratio = np.empty_like(self._apart)
        for step in range(steps):
            if step % 16 == 0:
                check()
            points = self.points
            np.matmul(points, points.T, out=ratio)
            ratio *= np.float32(-2.0)
            ratio += sums
            np.maximum(ratio, np.float32(1e-10), out=ratio)
            np.divide(self._wanted, np.sqrt(ratio, out=ratio), out=ratio)
            moved = ratio.sum(axis=1)[:, None] * points - ratio @ points
            moved += self._counts @ points
            moved /= total
            length = _lengths(moved)
            usable = length > 1e-9
            factor = self._radius / np.where(usable, length, 1.0)
            self.points = np.where(usable[:, None], moved * factor[:, None], points)

    def _costs(
        self, radius: float, points: FloatArray, squares: FloatArray, wanted: FloatArray, counts: FloatArray
    ) -> FloatArray:
        """``(DIRECTIONS,)``: Σ (d² - 2dD) of a point at this radius; ``wanted`` is D times counts."""
        lengths = self._rays @ points.T
        lengths *= np.float32(-2.0) * radius
        lengths += squares + radius * radius
        np.maximum(lengths, 0.0, out=lengths)
        costs = lengths @ counts
        np.sqrt(lengths, out=lengths)
        costs -= 2.0 * (lengths @ wanted)
        found: FloatArray = costs
        return found


def _upright(radius: FloatArray, directions: FloatArray) -> FloatArray:
    """Rotate so that the first candidate points up, and mirror so that most weight is on the right."""
    cosine, sine = directions[0, 1], directions[0, 0]
    turned = np.stack(
        (
            cosine * directions[:, 0] - sine * directions[:, 1],
            sine * directions[:, 0] + cosine * directions[:, 1],
        ),
        axis=1,
    )
    if turned[:, 0].sum() < 0:
        turned[:, 0] *= -1.0
    placed: FloatArray = turned * radius[:, None]
    return placed


def _lengths(vectors: FloatArray) -> FloatArray:
    lengths: FloatArray = np.sqrt((vectors * vectors).sum(axis=-1))
    return lengths
