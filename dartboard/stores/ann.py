"""Nearest neighbours by inner product: exact with NumPy, approximate with FAISS.

Exact search computes one float32 product over all rows. Every row that could be among the k best is then
scored again in float64. The margin for "could be" is the largest rounding error,
``2 · d · 2⁻²⁴ · |q| · max |x|``, so the result is exact, and equal vectors get equal scores.

Approximate search uses product quantisation with FAISS' fast scan (André, Kermarrec and Le Scouarnec, 2015).
Each 2 dimensions (4 in large collections) are stored as a 4-bit code. A search scans all codes and scores
the best few times k rows again from the vectors. Recall does not depend on where the query lies. Graph and
IVF indexes lose recall for queries that are unlike all passages. Very large collections also use IVF:
vectors are grouped around centroids, and only the groups nearest to the query are scanned. When the index is
built, trial queries on its own vectors decide how many rows are scored again and how many groups are scanned.

FAISS does not validate the files that it parses: pass only trusted bytes to
:meth:`ApproximateIndex.from_bytes`.
"""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dartboard.errors import MissingExtraError
from dartboard.types import FloatArray, IntArray
from dartboard.utils import unit_rows

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]

RECALL = 0.995
"""Recall of the 100 nearest on trial queries: slightly above the documented .99."""
LARGE_FROM = 300_000
"""From this size on, 4 dimensions share a code instead of 2: half the scan, more rows scored again."""
GROUPS_FROM = 2_000_000
"""Smaller indexes have no groups; every code is scanned."""
_MANY_THREADS_FROM = 50_000
_BLOCK = 8192
_TRAINING_POINTS_A_GROUP = 40
_TRAINING_POINTS = 20_000
_POINTS = 16
_TRIAL_QUERIES = 96
"""Trial queries of each kind. With few queries, one hard query would make every search slower."""
_TRIAL_K = 100
_LEAST_SPARE, _MOST_SPARE = 2, 32
"""Candidates for rescoring, as multiples of k."""
_LEAST_RESCORED = 100
_UNLIKELY_MAY_LOSE = (2.0, 30.0)
"""Factor on the allowed loss for queries unlike anything indexed: in smaller and in large collections."""


class Rows(Protocol):
    """A matrix that may be on disk: ``(n, d)`` float32, read in blocks."""

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``: rows and dimensions."""

    def take(self, positions: IntArray) -> Floats:
        """These rows."""

    def blocks(self, size: int) -> Iterator[Floats]:
        """All rows in order, ``size`` at a time."""


def faiss_is_there() -> bool:
    """Whether FAISS can be imported."""
    try:
        import faiss  # noqa: F401
    except ImportError:
        return False
    return True


def rounding_slack(dimension: int, query: FloatArray, longest: float) -> float:
    """Largest error of the order of two float32 products over ``dimension`` numbers."""
    return 2.0 * dimension * 2.0**-24 * float(np.linalg.norm(query.astype(np.float64))) * longest


def near_the_best(scores: FloatArray, k: int, slack: float) -> IntArray:
    """Positions of all scores that may be among the k best if each can be wrong by half the slack."""
    if scores.size <= k:
        return np.arange(scores.size)
    floor = np.partition(scores, scores.size - k)[scores.size - k]
    return np.flatnonzero(scores >= floor - slack)


def precise_scores(vectors: FloatArray, query: FloatArray) -> npt.NDArray[np.float32]:
    """Inner products in float64: equal rows get equal scores at every position."""
    products = vectors.astype(np.float64) * query.astype(np.float64)
    scores: Floats = products.sum(axis=1).astype(np.float32)
    return scores


@dataclass(frozen=True, slots=True, eq=False)
class ApproximateIndex:
    """Product-quantised vectors that are scanned for candidates; positions follow the order of building.

    A search scans ``probes`` groups and returns ``spare`` times as many candidates as requested.
    """

    index: Any
    probes: int
    spare: int
    recall: float

    @classmethod
    def build(
        cls,
        rows: Rows,
        *,
        recall: float = RECALL,
        large_from: int = LARGE_FROM,
        groups_from: int = GROUPS_FROM,
        seed: int = 0,
    ) -> "ApproximateIndex":
        """Train on a sample, add the rows block by block, and tune the search to the recall.

        Args:
            rows: The vectors.
            recall: Recall of the 100 nearest that trial queries must reach.
            large_from: From this many rows on, 4 dimensions share a code.
            groups_from: From this many rows on, the index has groups (IVF).
            seed: Seed of the training sample and of the trial queries.
        """
        chance = np.random.default_rng(seed)
        with _threads(_faiss(), 1 if rows.shape[0] < _MANY_THREADS_FROM else None):
            index = _trained(rows, large_from, groups_from, chance)
            for block in rows.blocks(_BLOCK):
                index.add(_padded(block, index.d))
        return _adjusted(cls(index, int(index.nlist), _MOST_SPARE, 0.0), rows, recall, chance)

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def search(self, query: FloatArray, k: int, allowed: Mask | None = None, *, wider: int = 1) -> IntArray:
        """Candidate positions that contain the ``k`` nearest, in no particular order.

        ``allowed`` is a mask over all positions; ``wider`` multiplies the number of scanned groups.
        """
        positions: IntArray = self.search_many(query[None], k, allowed, wider=wider)[0]
        return positions[positions >= 0]

    def search_many(
        self, queries: FloatArray, k: int, allowed: Mask | None = None, *, wider: int = 1
    ) -> IntArray:
        """Like :meth:`search` for several queries: ``(n, m)``, padded with -1."""
        faiss = _faiss()
        given: dict[str, Any] = {"nprobe": min(int(self.index.nlist), self.probes * wider)}
        if allowed is not None:
            bits = np.packbits(allowed, bitorder="little")
            given["sel"] = faiss.IDSelectorBitmap(allowed.size, faiss.swig_ptr(bits))
        wanted = min(len(self), max(self.spare * k, _LEAST_RESCORED))
        with _threads(faiss, 1):
            _, found = self.index.search(
                _padded(queries, self.index.d), wanted, params=faiss.SearchParametersIVF(**given)
            )
        positions: IntArray = found.astype(np.intp)
        return positions

    def looks_everywhere(self, wider: int) -> bool:
        """Whether a search with this ``wider`` scans every group."""
        return self.probes * wider >= int(self.index.nlist)

    def describe(self) -> dict[str, Any]:
        """Kind and settings of the index, for statistics."""
        return {
            "kind": "pq4 fast scan",
            "bytes_a_vector": int(self.index.code_size),
            "groups": int(self.index.nlist),
            "scanned_groups": self.probes,
            "rescored": f"{self.spare} k",
            "recall_on_trial": round(self.recall, 4),
        }

    def to_bytes(self) -> bytes:
        """Serialise for :meth:`from_bytes`."""
        head = json.dumps([self.probes, self.spare, self.recall]).encode()
        body: bytes = _faiss().serialize_index(self.index).tobytes()
        return len(head).to_bytes(4, "little") + head + body

    @classmethod
    def from_bytes(cls, data: bytes) -> "ApproximateIndex":
        """Load what :meth:`to_bytes` wrote. Never pass untrusted bytes."""
        start = 4 + int.from_bytes(data[:4], "little")
        probes, spare, recall = json.loads(data[4:start])
        index = _faiss().deserialize_index(np.frombuffer(data, np.uint8, offset=start))
        return cls(index, int(probes), int(spare), float(recall))


def _trained(rows: Rows, large_from: int, groups_from: int, chance: "np.random.Generator") -> Any:
    """A trained index (code points and centroids) without rows."""
    faiss = _faiss()
    count, dimension = rows.shape
    groups = int(math.sqrt(count)) if count >= groups_from else 1
    together = 2 if count < large_from else 4
    codes = -(-dimension // together)
    index = faiss.index_factory(codes * together, f"IVF{groups},PQ{codes}x4fs", faiss.METRIC_INNER_PRODUCT)
    index.cp.niter = 10
    index.cp.min_points_per_centroid = index.pq.cp.min_points_per_centroid = 1  # few points need no warning
    needed = max(_TRAINING_POINTS, groups * _TRAINING_POINTS_A_GROUP)
    sample = np.sort(chance.choice(count, min(count, needed), replace=False))
    sample = np.resize(sample, max(sample.size, _POINTS))
    index.train(_padded(rows.take(sample), index.d))
    return index


def _adjusted(
    index: ApproximateIndex, rows: Rows, wanted: float, chance: "np.random.Generator"
) -> ApproximateIndex:
    """The same index with the fewest candidates, then the fewest groups, that reach the wanted recall.

    With groups, half of the allowed loss goes to the codes and the rest to groups that are not scanned.
    """
    k = min(_TRIAL_K, len(index))
    trials = [(queries, _exact(rows, queries, k)) for queries in _trial_queries(rows, chance)]
    may_lose = np.array([1, 1, _UNLIKELY_MAY_LOSE[len(index) >= LARGE_FROM]]) * (1 - wanted)

    def tried(index: ApproximateIndex) -> list[tuple[float, float]]:
        """For every spare: the recall, and the share of the allowed loss that it uses."""
        reached = np.array([_recalls(index, queries, truth, k) for queries, truth in trials])
        lost = (1 - reached) / may_lose[:, None]
        return list(zip(reached[:2].min(axis=0).tolist(), lost.max(axis=0).tolist(), strict=True))

    def narrowed(index: ApproximateIndex, allowed: float) -> ApproximateIndex | None:
        """The index with the smallest spare whose loss stays within ``allowed``."""
        for spare, (reached, lost) in enumerate(tried(index)[_LEAST_SPARE:], start=_LEAST_SPARE):
            if lost <= allowed:
                return replace(index, spare=spare, recall=reached)
        return None

    if index.index.nlist == 1:
        return narrowed(index, 1.0) or replace(index, recall=tried(index)[-1][0])
    index = narrowed(index, 0.5) or replace(index, recall=tried(index)[-1][0])
    probes = 1
    while probes < index.index.nlist:
        fewer = replace(index, probes=probes)
        reached, lost = tried(fewer)[index.spare]
        if lost <= 1:
            return replace(fewer, recall=reached)
        probes = max(probes + 1, int(probes * 1.5))
    return index


def _trial_queries(rows: Rows, chance: "np.random.Generator") -> tuple[Floats, Floats, Floats]:
    """Trial queries: near the collection's vectors, between two of them, and random ones.

    Real questions resemble the first two kinds: they lie as far from passages as passages from each other, or
    between topics. Which kind loses more recall depends on the collection.
    """
    count, _ = rows.shape
    size = min(count, _TRIAL_QUERIES)
    first, second, third = chance.choice(count, (3, size))
    between: Floats = unit_rows((2 * rows.take(first) + rows.take(second)) / np.float32(3))
    noise = chance.standard_normal((max(1, size // 2), size)) @ between
    anywhere: Floats = unit_rows(noise).astype(np.float32)
    return unit_rows(rows.take(third)), between, anywhere


def _recalls(index: ApproximateIndex, queries: Floats, truth: list[IntArray], k: int) -> npt.NDArray[Any]:
    """The recall for every spare up to the index's own, from the ranks of the true neighbours.

    Candidates are sorted best first, so one search also shows what a smaller search would find.
    """
    found = index.search_many(queries, k)
    within = np.zeros(index.spare + 1)
    for right, got in zip(truth, found, strict=True):
        places = np.flatnonzero(np.isin(got, right))
        within += np.searchsorted(places, np.maximum(np.arange(index.spare + 1) * k, _LEAST_RESCORED))
    recalls: npt.NDArray[Any] = within / sum(map(len, truth))
    return recalls


def _exact(rows: Rows, queries: Floats, k: int) -> list[IntArray]:
    """Positions of the ``k`` nearest of each query, block by block."""
    best = np.full((len(queries), k), -np.inf, np.float32)
    where = np.full((len(queries), k), -1, np.intp)
    start = 0
    for block in rows.blocks(_BLOCK):
        scores = np.concatenate([best, queries @ block.T], axis=1)
        positions = np.concatenate(
            [where, np.broadcast_to(np.arange(start, start + len(block)), (len(queries), len(block)))], axis=1
        )
        chosen = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        best = np.take_along_axis(scores, chosen, axis=1)
        where = np.take_along_axis(positions, chosen, axis=1)
        start += len(block)
    return list(where)


@contextmanager
def _threads(faiss: Any, count: int | None) -> Iterator[None]:
    """Limit FAISS to ``count`` threads in this thread: for small tasks, synchronisation costs most."""
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count or before)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _padded(vectors: FloatArray, dimension: int) -> Floats:
    """Rows padded to the index's dimension; trailing zeros do not change an inner product."""
    if vectors.shape[1] < dimension:
        vectors = np.pad(vectors, ((0, 0), (0, dimension - vectors.shape[1])))
    return np.ascontiguousarray(vectors, dtype=np.float32)


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError("faiss-cpu", "search", "An approximate index") from error
    return faiss
