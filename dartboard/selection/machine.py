"""Calls into what was compiled from ``machine.c``.

Arrays have to be what the functions say, C-contiguous unless a stride is asked for, and are not looked at:
only selection's own code calls here, with arrays that it made.
"""

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.types import FloatArray, IntArray

_AT, _SIZE, _REAL, _SMALL = ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_double, ctypes.c_float
_NO_REFEREE = (None, None)
_BITS: dict[np.dtype[Any], str] = {np.dtype(np.float32): "32", np.dtype(np.float64): "64"}


class Lined(NamedTuple):
    """Candidates as unit rows, the closest to the query first: their cosines with it, who is where.

    Where several candidates share a row, ``order`` has one of them, and ``row_of`` the row of each.
    """

    unit: FloatArray
    cosines: FloatArray
    order: IntArray
    row_of: IntArray


class Concluded(NamedTuple):
    """A selection: picks and their arrays, then those of all candidates, and the bound."""

    picks: IntArray
    similarity: FloatArray
    gains: FloatArray
    log_gains: FloatArray
    coverage: FloatArray
    owners: IntArray
    relevance: FloatArray
    bound: float


class LinedMany(NamedTuple):
    """The same of many pools: ``apart`` and ``nearest`` are distances, ``usual`` are those to go on with."""

    pairs: FloatArray
    cosines: FloatArray
    order: IntArray
    row_of: IntArray
    apart: FloatArray | None
    nearest: FloatArray
    usual: npt.NDArray[np.bool_]


def in_one_piece(*arrays: FloatArray) -> bool:
    """Whether arrays can be given away by their addresses."""
    return all(array.flags.c_contiguous for array in arrays)


class Machine:
    """The functions of one library."""

    def __init__(self, library: ctypes.CDLL) -> None:
        def take(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
            function: Callable[..., Any] = getattr(library, name)
            function.restype, function.argtypes = result, arguments  # type: ignore[attr-defined]
            return function

        def both(name: str, result: Any, *arguments: Any) -> dict[np.dtype[Any], Callable[..., Any]]:
            return {dtype: take(f"{name}_{bits}", result, *arguments) for dtype, bits in _BITS.items()}

        self._gaussian = take("gaussian", None, _AT, _SIZE, _SMALL, _AT)
        self._gain_at_most = take("gain_at_most", None, _AT, _SIZE, _SIZE, _AT, _AT, _AT, _SIZE, _AT)
        self._refresh = both("refresh", None, _AT, _SIZE, *[_AT] * 5, _SIZE)
        self._exponentials = take("exponentials", None, _AT, _SIZE, _AT)
        self._fill = take("fill", None, _AT, _SIZE, _SMALL)
        self._line_up = take("line_up", ctypes.c_int, _AT, _SIZE, _SIZE, *[_AT] * 5)
        self._spread_out = take("spread_out", _SMALL, _AT, _SIZE, _AT, _AT)
        self._leaves = take("leaves", None, _AT, _SIZE, _SIZE, _AT)
        self._join = take("join", _SIZE, _AT, _SIZE, _REAL, ctypes.c_int, _AT, _AT, _AT)
        self._conclude = take(
            "conclude",
            _SIZE,
            *(_AT, _SIZE, _SIZE, _SIZE, *[_AT] * 5, _REAL, _REAL, _REAL, _SIZE, *[_AT] * 8),
        )
        self._line_up_many = take(
            "line_up_many", None, _AT, _AT, _SIZE, _SIZE, _SIZE, *[_AT] * 6, _SMALL, _AT, _AT
        )
        self._conclude_many = take(
            "conclude_many",
            None,
            *(_AT, _SIZE, _SIZE, _SIZE, *[_AT] * 7, _REAL, _SIZE, *[_AT] * 9),
        )
        self._add_strip = take("add_strip", None, _AT, _SIZE, _SIZE, _SIZE, _SIZE, _SMALL, *[_AT] * 6)
        self._compare_texts = take(
            "compare_texts", ctypes.c_int, _AT, _AT, _SIZE, *[_AT] * 4, _SIZE, _REAL, _REAL, _AT, _AT
        )
        self._prints = take("prints", None, _AT, _SIZE, _SIZE, _AT, _SIZE, _AT)
        self._prepare = both("prepare", _REAL, _AT, _SIZE, _SIZE, _AT, _REAL, _AT, _AT, _AT)
        self._walk = both("walk", _SIZE, _AT, _SIZE, _SIZE, *[_AT] * 4, _REAL, _REAL, _SIZE, *[_AT] * 4)
        self._answer = both("answer", _SIZE, _AT, _SIZE, *[_AT] * 3, _REAL, _REAL, _SIZE, _SIZE, *[_AT] * 6)

    def compare_texts(
        self,
        codes: npt.NDArray[np.uint32],
        ends: IntArray,
        small: npt.NDArray[np.uint16],
        kinds: npt.NDArray[np.uint8],
        multipliers: npt.NDArray[np.uint64],
        telling: npt.NDArray[np.uint64],
        shared: float,
        as_long: float,
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Which texts are copies, and which are told apart (:mod:`dartboard.selection.wording`)."""
        copies, apart = np.empty((2, len(ends), len(ends)), dtype=np.bool_)
        arrays = (*(array.ctypes.data for array in (small, kinds, multipliers, telling)), len(telling))
        if not self._compare_texts(
            *(codes.ctypes.data, ends.ctypes.data, len(ends), *arrays),
            *(shared, as_long, copies.ctypes.data, apart.ctypes.data),
        ):
            raise MemoryError("no memory to compare texts")
        return copies, apart

    def exp(self, values: FloatArray) -> FloatArray:
        """``exp`` of float32 values that are not above 0."""
        out = np.empty_like(values)
        self._exponentials(values.ctypes.data, values.size, out.ctypes.data)
        return out

    def fill(self, kernel: FloatArray, scale: np.float32) -> None:
        """Cosines below and on the diagonal become ``exp(scale · (1 - cos)²)`` on both sides, in place."""
        self._fill(kernel.ctypes.data, len(kernel), scale)

    def gaussian(self, cosines: FloatArray, scale: np.float32, kernel: FloatArray) -> None:
        """``exp(scale · (1 - cos)²)``, into an array that may be the same one."""
        self._gaussian(cosines.ctypes.data, cosines.size, scale, kernel.ctypes.data)

    def gain_at_most(
        self,
        board: FloatArray,
        weights: FloatArray,
        covered: FloatArray,
        candidates: IntArray,
    ) -> FloatArray:
        """``Σ_r w_r max(0, board[r,c] - covered_r)`` of candidates ``c``, whose columns these are."""
        gains = np.zeros(len(candidates), np.float32)
        self._gain_at_most(
            *(board.ctypes.data, *board.shape, weights.ctypes.data, covered.ctypes.data),
            *(candidates.ctypes.data, len(candidates), gains.ctypes.data),
        )
        return gains

    def refresh(
        self,
        kernel: FloatArray,
        weights: FloatArray,
        covered: FloatArray,
        bounds: FloatArray,
        slack: FloatArray,
        rows: IntArray,
    ) -> None:
        """As :func:`dartboard.selection.dense.refresh`."""
        self._refresh[kernel.dtype](
            *(kernel.ctypes.data, kernel.shape[1]),
            *(array.ctypes.data for array in (weights, covered, bounds, slack, rows)),
            len(rows),
        )

    def line_up(
        self, embeddings: FloatArray, query: FloatArray, unit: FloatArray | None = None
    ) -> Lined | None:
        """Float32 candidates in order, their rows into ``unit`` where that is given.

        None for what is out of the ordinary, as copies are.
        """
        n, dim = embeddings.shape
        unit, cosines = np.empty((n, dim), np.float32) if unit is None else unit, np.empty(n, np.float32)
        order, row_of = np.empty((2, n), dtype=np.intp)
        usual = self._line_up(
            *(embeddings.ctypes.data, n, dim, query.ctypes.data),
            *(array.ctypes.data for array in (unit, cosines, order, row_of)),
        )
        return Lined(unit, cosines, order, row_of) if usual else None

    def spread_out(self, pairs: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """Distances of all pairs, of each row to the nearest other one, and the least of them."""
        n = len(pairs)
        apart, nearest = np.empty(n * (n - 1) // 2, np.float32), np.empty(n, np.float32)
        return apart, nearest, self._spread_out(pairs.ctypes.data, n, apart.ctypes.data, nearest.ctypes.data)

    def join(
        self, between: FloatArray, limit: float, *, ward: bool = False
    ) -> tuple[IntArray, IntArray, FloatArray, float]:
        """Joins of average linkage, or Ward's, up to a height, and that of the next; overwrites distances."""
        first, second = np.empty((2, len(between)), dtype=np.intp)
        heights = np.empty(len(between))
        made = self._join(
            *(between.ctypes.data, len(between), limit, ward),
            *(first.ctypes.data, second.ctypes.data, heights.ctypes.data),
        )
        if made < 0:
            raise MemoryError
        return first[:made], second[:made], heights[:made], float(heights[made])

    def leaves(self, between: FloatArray, neighbours: int) -> FloatArray:
        """As :func:`dartboard.selection.copies._leaves`; distances of rows to themselves are infinite."""
        found = np.empty((2, len(between)))
        self._leaves(between.ctypes.data, len(between), neighbours, found.ctypes.data)
        return found

    def conclude(
        self,
        embeddings: FloatArray,
        query: FloatArray,
        lined: Lined,
        pairs: FloatArray,
        sigma: float,
        rounding: float,
        smallest: float,
        k: int,
    ) -> Concluded | None:
        """``k`` picks and what explains them; None where one is unclear.

        ``pairs``, ``(n, n)``, are cosines on and below the diagonal, and are overwritten.
        Picks that float32 does not tell apart are settled in double precision, from the candidates as given.
        """
        n, dim = embeddings.shape
        rows = len(lined.order)
        whole, real = np.empty(k + n, dtype=np.intp), np.empty(4 * k + n + 1)
        ints, reals = whole.ctypes.data, real.ctypes.data
        made = self._conclude(
            *(embeddings.ctypes.data, n, rows, dim, query.ctypes.data),
            *(pairs.ctypes.data, lined.cosines.ctypes.data),
            *(lined.order.ctypes.data, lined.row_of.ctypes.data, sigma, rounding, smallest, k),
            *(ints, ints + whole.itemsize * k),
            *(reals + 8 * start for start in (0, k, 2 * k, 3 * k, 4 * k, 4 * k + n)),
        )
        if made < k:
            return None
        similarity, gains, log_gains, coverage = real[: 4 * k].reshape(4, k)
        shares = (similarity, gains, log_gains, coverage)
        return Concluded(whole[:k], *shares, whole[k:], real[4 * k : -1], float(real[-1]))

    def line_up_many(
        self, syrk: int, embeddings: FloatArray, queries: FloatArray, *, spread: bool, noise: float
    ) -> LinedMany:
        """Pools ``(b, n, d)`` in order, by the ``cblas_ssyrk`` at an address.

        If ``spread``, distances are worked out, and pools with two candidates within ``noise`` not usual.
        """
        count, n, dim = embeddings.shape
        order, row_of = np.empty((2, count, n), dtype=np.intp)
        usual = np.empty(count, dtype=bool)
        pairs, cosines, nearest = (
            np.empty(shape, np.float32) for shape in ((count, n, n), (count, n), (count, n))
        )
        apart = np.empty((count, n * (n - 1) // 2), np.float32) if spread else None
        self._line_up_many(
            *(syrk, embeddings.ctypes.data, count, n, dim, queries.ctypes.data),
            *(array.ctypes.data for array in (pairs, cosines, order, row_of)),
            *(None if apart is None else apart.ctypes.data, noise, nearest.ctypes.data, usual.ctypes.data),
        )
        return LinedMany(pairs, cosines, order, row_of, apart, nearest, usual)

    def conclude_many(
        self,
        embeddings: FloatArray,
        queries: FloatArray,
        lined: LinedMany,
        sigma: FloatArray,
        rounding: FloatArray,
        smallest: float,
        k: int,
    ) -> list[Concluded | None]:
        """:meth:`conclude` for the pools that are ``usual``; None for others, or where a pick is unclear."""
        count, n, dim = embeddings.shape
        picks, owners = np.empty((count, k), dtype=np.intp), np.empty((count, n), dtype=np.intp)
        by_pick, relevance, bound = np.empty((4, count, k)), np.empty((count, n)), np.empty(count)
        self._conclude_many(
            *(embeddings.ctypes.data, count, n, dim, queries.ctypes.data),
            *(array.ctypes.data for array in (lined.pairs, lined.cosines, lined.order, lined.row_of)),
            *(sigma.ctypes.data, rounding.ctypes.data, smallest, k, picks.ctypes.data, owners.ctypes.data),
            *(array.ctypes.data for array in (*by_pick, relevance, bound, lined.usual)),
        )
        similarity, gains, log_gains, coverage = by_pick
        each = zip(
            picks, similarity, gains, log_gains, coverage, owners, relevance, bound.tolist(), strict=True
        )
        clear = zip(each, lined.usual.tolist(), strict=True)
        return [Concluded(*one) if usual else None for one, usual in clear]

    def add_strip(
        self,
        cosines: FloatArray,
        diagonal: int | None,
        scale: np.float32,
        weights: tuple[FloatArray, FloatArray],
        sums: tuple[FloatArray, FloatArray],
        strip: FloatArray,
        room: FloatArray,
    ) -> None:
        """Kernel values of rows of a panel into ``strip``, added to the sums of rows and of columns.

        Where rows begin at the diagonal, at a column, what stands above it does not count and becomes 0,
        and what stands on it becomes one half.
        """
        at = -1 if diagonal is None else diagonal
        self._add_strip(
            *(cosines.ctypes.data, cosines.strides[0] // 4, *strip.shape, at, scale),
            *(array.ctypes.data for array in (*weights, *sums, strip, room)),
        )

    def prints(
        self,
        bits: npt.NDArray[np.uint64],
        multipliers: npt.NDArray[np.uint64],
        found: npt.NDArray[np.uint64],
    ) -> None:
        """Fingerprints of rows of 64-bit words, by as many words as there are multipliers."""
        wide = bits.strides[0] // 8
        self._prints(
            bits.ctypes.data, len(bits), wide, multipliers.ctypes.data, len(multipliers), found.ctypes.data
        )

    def prepare(
        self,
        kernel: FloatArray,
        log_weights: FloatArray,
        rounding: float,
        weights: FloatArray,
        alone: FloatArray,
        slack: FloatArray,
    ) -> float:
        """Weights, what each row covers alone, what rounding may do to it; returns the sum of weights."""
        total: float = self._prepare[kernel.dtype](
            kernel.ctypes.data,
            *kernel.shape,
            np.ascontiguousarray(log_weights, np.float64).ctypes.data,
            rounding,
            weights.ctypes.data,
            alone.ctypes.data,
            slack.ctypes.data,
        )
        return total

    def walk(
        self,
        kernel: FloatArray,
        weights: FloatArray,
        covered: FloatArray,
        bounds: FloatArray,
        slack: FloatArray,
        smallest: float,
        stop_below: float,
        rows: IntArray,
        gains: FloatArray,
    ) -> int:
        """As :func:`dartboard.selection.dense.walk`."""
        made: int = self._walk[kernel.dtype](
            kernel.ctypes.data,
            *kernel.shape,
            *(array.ctypes.data for array in (weights, covered, bounds, slack)),
            smallest,
            stop_below,
            len(rows),
            rows.ctypes.data,
            gains.ctypes.data,
            *_NO_REFEREE,
        )
        return made

    def answer(
        self,
        kernel: FloatArray,
        weights: FloatArray,
        alone: FloatArray,
        slack: FloatArray,
        smallest: float,
        stop_share: float,
        size: int,
        rows: IntArray,
        gains: FloatArray,
        owners: IntArray,
        most: FloatArray,
    ) -> int:
        """As :func:`dartboard.selection.dense.answer`."""
        made: int = self._answer[kernel.dtype](
            kernel.ctypes.data,
            len(kernel),
            *(array.ctypes.data for array in (weights, alone, slack)),
            smallest,
            stop_share,
            size,
            len(rows),
            *(array.ctypes.data for array in (rows, gains, owners, most)),
            *_NO_REFEREE,
        )
        return made
