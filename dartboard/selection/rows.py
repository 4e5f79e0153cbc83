"""Candidates as rows: copies as one, in an order that does not depend on where they stood.

Rows in float32 stand in the order of their cosines with the query where these all differ: then there are no
copies, and whoever looks for the heaviest targets finds them first. Else, and in float64, it is their content
that orders them.
"""

import math
from typing import NamedTuple

import numpy as np

from dartboard.selection.compiled import compiled
from dartboard.selection.content import by_closeness, by_content
from dartboard.selection.kernels import (
    Distance,
    by_cosine,
    direct,
    distances,
    row_dots,
    unit_rows,
    unit_vector,
)
from dartboard.types import FloatArray, IntArray, check_matrix

FAST_FROM_ROWS = 64
FAST_FROM_SIGMA = 0.03
"""Below either, float32 saves nothing or proves nothing."""


class Rows(NamedTuple):
    """Distinct vectors as the distance wants them, a candidate of each, and for every candidate its row.

    ``to_query`` are distances and ``similarity`` cosines with the query, float64, one a row.
    """

    vectors: FloatArray
    to_query: FloatArray
    similarity: FloatArray
    candidates: IntArray
    row_of: IntArray


def fast_rows(query: FloatArray, embeddings: FloatArray, *, by_query: bool) -> Rows:
    """Unit rows in float32, for the scaled cosine; in an order that the query has a say in, or not."""
    if by_query and (machine := compiled()) and embeddings.dtype == np.float32:
        asked = np.ascontiguousarray(query, np.float32)
        lined = machine.line_up(np.ascontiguousarray(embeddings), asked)
        if lined is not None:
            similarity = np.minimum(lined.cosines, 1.0, dtype=np.float64)
            return Rows(lined.unit, by_cosine(lined.cosines), similarity, lined.order, lined.row_of)
    unit = unit_rows(embeddings, np.float32)
    cosines = row_dots(unit, unit_vector(query, np.float32))
    order = by_closeness(cosines) if by_query else None
    if order is None:
        order, row_of = by_content(embeddings)
    else:
        row_of = np.empty_like(order)
        row_of[order] = np.arange(len(order))
    to_query, similarity = _by_cosine(cosines[order], embeddings)
    return Rows(unit.take(order, axis=0), to_query, similarity, order, row_of)


def exact_rows(query: FloatArray, embeddings: FloatArray, distance: Distance) -> Rows:
    """Rows in float64."""
    vectors = direct(embeddings, distance)
    vectors += 0.0  # -0.0 becomes 0.0: equal numbers, equal bits
    order, row_of = by_content(vectors)
    vectors = vectors[order]
    if distance == "scaled_cosine":
        to_query, similarity = _by_cosine(vectors @ unit_vector(query, np.float64), embeddings)
        return Rows(vectors, to_query, similarity, order, row_of)
    check_matrix(embeddings)
    asked = direct(query[None], distance)
    similarity = unit_rows(vectors) @ unit_rows(asked)[0]
    centre = vectors.mean(axis=0)  # distances stay, but lose less to rounding
    vectors, asked = vectors - centre, asked - centre
    return Rows(vectors, distances(vectors, asked, distance)[:, 0], similarity, order, row_of)


def _by_cosine(cosines: FloatArray, embeddings: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distances and similarities; complains of embeddings that have no direction."""
    # Such a row is NaN throughout once it is scaled to unit length.
    if not math.isfinite(np.add.reduce(cosines)):
        check_matrix(embeddings)
    similarity = np.minimum(cosines, 1.0, dtype=np.float64)
    return by_cosine(cosines), similarity
