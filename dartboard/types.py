"""The data that travels between rooms: no behaviour beyond validation.

Vectors are checked where they enter, because one NaN or zero vector quietly tops or poisons every
query that meets it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError

FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.intp]

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-5, 10.0
"""The range of σ at every door: configuration, command line, service, calibration and integrations."""


def _as_floats(values: npt.ArrayLike, name: str, what: str) -> FloatArray:
    """Floating-point array, float32 and float64 kept, everything else made float64."""
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = _unboxed(array, name)
        if array.dtype.kind not in "fiub":
            raise TypeError(array.dtype)
    except InvalidInputError:
        raise
    except OverflowError as error:
        raise InvalidInputError(f"{name} has a number too large for a double: scale it") from error
    except (TypeError, ValueError, RuntimeError) as error:
        got = f"{type(values).__name__}{_advice(values)}"
        raise InvalidInputError(f"{name}: expected {what} of numbers, got {got}") from error
    if array.dtype not in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # what a double cannot hold becomes infinite, which is refused
            array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    return array


def refuse_masked(values: object, name: str) -> None:
    """Refuse a masked array that hides values: they would be read as if they were there."""
    if type(values) is np.ndarray:  # not masked; looking at numpy.ma would import it
        return
    if isinstance(values, np.ma.MaskedArray) and (hidden := int(np.sum(values.mask))):
        raise InvalidInputError(
            f"{name} is a masked array that hides {hidden:,} value{'' if hidden == 1 else 's'}, and a mask "
            "is not looked at: give the rows without hidden values (numpy.ma.compress_rows), or leave "
            "candidates out with exclude"
        )


def _unboxed(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Objects as numbers: a column whose cells are vectors, as data frames have it, becomes a matrix."""
    cells = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if cells.ndim != 1 or not any(hasattr(cell, "__len__") for cell in cells):
        return array.astype(np.float64)
    rows: list[npt.NDArray[Any]] = []
    for place, cell in enumerate(cells):
        if isinstance(cell, str):
            raise InvalidInputError(
                f"{name} row {place} is text, not a vector: turn the texts into lists of numbers first, as "
                "json.loads does"
            )
        row = np.asarray(cell)
        if row.ndim != 1 or (rows and row.shape != rows[0].shape):
            got = f"{row.size} numbers" if row.ndim == 1 else "no vector"
            raise InvalidInputError(
                f"{name} row {place} has {got} where all need one vector of the same length: "
                "drop it, or encode it again"
            )
        rows.append(row)
    return np.stack(rows)


def _advice(values: object) -> str:
    """How to make numbers of what NumPy does not understand."""
    if hasattr(values, "detach"):
        return ": NumPy cannot read it as it is, give tensor.detach().cpu().float()"
    if hasattr(values, "columns"):
        return " with columns that are not numbers: give the column that holds the vectors"
    return ""


def check_vector(
    values: npt.ArrayLike, *, name: str = "embedding", dim: int | None = None, one_row: bool = True
) -> FloatArray:
    """One usable vector, ``(d,)`` float: finite, not all zero, of ``dim`` entries where that is given.

    A matrix of one row, ``(1, d)``, as models give it for one text, is that row where ``one_row`` allows it.
    """
    vector = _as_floats(values, name, "a vector")
    if one_row and vector.ndim == 2 and len(vector) == 1:
        vector = vector[0]
    if vector.ndim != 1 or vector.size == 0:
        raise InvalidInputError(f"{name} must be a vector of at least one number, got shape {vector.shape}")
    if dim is not None and vector.size != dim:
        raise InvalidInputError(f"{name} has {vector.size} dimensions where {dim} are expected")
    if not np.isfinite(vector).all():
        raise InvalidInputError(f"{name} contains NaN or infinity: encode the text again or drop it")
    if not vector.any():
        raise InvalidInputError(f"{name} is all zeros and has no direction: encode the text again or drop it")
    return vector


def as_float32(vector: FloatArray, name: str) -> npt.NDArray[np.float32]:
    """A usable vector as float32; one that float32 cannot hold, or holds as zeros, is an error."""
    with np.errstate(over="ignore", under="ignore"):
        small = vector.astype(np.float32, copy=False)
    if small is not vector and not (np.isfinite(small).all() and small.any()):
        raise InvalidInputError(
            f"{name} does not fit into float32 (1e-45 to 3e38): scale it, to length 1 for instance"
        )
    return small


def as_matrix(values: npt.ArrayLike, *, name: str = "embeddings", dim: int | None = None) -> FloatArray:
    """Row vectors, ``(n, d)`` float with n ≥ 1, their entries unchecked."""
    matrix = _as_floats(values, name, "a matrix")
    if matrix.ndim != 2 or matrix.size == 0:
        raise InvalidInputError(f"{name} must be a matrix of at least one row, got shape {matrix.shape}")
    if dim is not None and matrix.shape[1] != dim:
        raise InvalidInputError(f"{name} have {matrix.shape[1]} dimensions where {dim} are expected")
    return matrix


def check_matrix(values: npt.ArrayLike, *, name: str = "embeddings", dim: int | None = None) -> FloatArray:
    """Row vectors as :func:`as_matrix` makes them, each row checked as :func:`check_vector` does."""
    matrix = as_matrix(values, name=name, dim=dim)
    # A row's sum of squares is finite and positive unless the row is unusable or at the edges of the
    # floating-point range; only then are its entries looked at one by one.
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix)
    doubtful = np.flatnonzero(~(np.isfinite(squares) & (squares > 0)))
    for row in doubtful:
        check_vector(matrix[row], name=f"{name} row {row}")
    return matrix


@dataclass(slots=True, eq=False)
class Chunk:
    """A passage with its vector. Two chunks are equal only if they are the same object.

    Args:
        id: a non-empty string, unique in its corpus.
        text: the passage; it must not be blank.
        embedding: ``(d,)`` float, finite and not all zeros.
        metadata: anything else that is known, such as ``source`` and ``title``.

    Raises:
        InvalidInputError: the id or text is empty, or the vector cannot be used.

    Example:
        >>> chunk = Chunk("keys-1", "Rotate the keys monthly.", np.array([0.6, 0.8]), {"source": "keys.md"})
        >>> chunk.metadata["source"]
        'keys.md'
    """

    id: str
    text: str
    embedding: FloatArray
    metadata: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise InvalidInputError(f"Chunk ID cannot be empty: expected a non-empty string, got {self.id!r}")
        if not isinstance(self.text, str) or not self.text.strip():
            raise InvalidInputError(f"Chunk text cannot be empty: chunk {self.id!r} has none")
        if self.embedding is None:
            raise InvalidInputError(f"Chunk must have valid embedding: chunk {self.id!r} has None")
        self.embedding = check_vector(self.embedding, name=f"embedding of chunk {self.id!r}", one_row=False)

    @classmethod
    def trusted(cls, id: str, text: str, embedding: FloatArray, metadata: dict[str, Any]) -> Self:
        """A chunk of parts that were checked when they came in: a search makes hundreds."""
        chunk = object.__new__(cls)
        chunk.id, chunk.text, chunk.embedding, chunk.metadata = id, text, embedding, metadata
        return chunk


class Hit(NamedTuple):
    """What a search found: a chunk's id and its score, higher is better."""

    id: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """How a result came about. Lists run along the picks; what nobody knows is None.

    ``targets`` are the candidates or a vocabulary, ``stands_for`` what each pick covers best, ``bound`` the
    share of the best possible coverage that the picks reach at least, ``near_copies`` how many candidates
    are near-duplicates of a more relevant one; ``relevance`` is :class:`dartboard.relevance.Relevance`.
    ``by_relevance`` says which picks go by relevance, because no candidate gained anything worth mentioning,
    and ``warnings`` what the user should know about the options, such as a σ that is too wide.
    ``shares`` say which part of a fusion found a pick, and ``retriever_score`` what the retriever gave it,
    None where it did not find it.

    Of several questions, ``questions`` has the ``text``, the ``weight`` and the ``coverage`` of each, and
    ``serves`` the position of the one that each pick serves most. ``covered_before`` is the share that was
    covered by what was ``seen``. With ``prefer``, ``copies`` are the other copies of each pick, with their
    ``id``, the preferred field, and in what they ``differ`` if they do.

    ``options`` are the :class:`dartboard.search_options.SearchOptions` of the search; they stand in
    ``config`` for programs.
    """

    method: str | None = None
    variant: str | None = None
    targets: str | None = None
    sigma: float | None = None
    sigma_source: str | None = None
    gain: list[float] | None = None
    coverage: list[float] | None = None
    similarity: list[float] | None = None
    by_relevance: list[bool] | None = None
    stands_for: list[list[Any]] | None = None
    bound: float | None = None
    candidates: int
    near_copies: int = 0
    questions: list[dict[str, Any]] | None = None
    serves: list[int] | None = None
    covered_before: float | None = None
    copies: list[list[dict[str, Any]]] | None = None
    warnings: list[str] | None = None
    relevance: Mapping[str, Any]
    config: Mapping[str, Any] | None = None
    seconds: Mapping[str, float]
    retriever: str | None = None
    collection: str | None = None
    shares: list[dict[str, Any]] | None = None
    retriever_score: list[float | None] | None = None
    options: Any = None

    def as_metadata(self) -> dict[str, Any]:
        """What is known, as a result's ``metadata``."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "options"}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(slots=True, repr=False)
class RetrievalResult:
    """The chunks that a query returned, in order, and how they were chosen.

    Args:
        query: the question.
        chunks: the picks, in the order of selection.
        scores: one for each chunk; for Dartboard its marginal gain.
        metadata: the explanation as a dictionary.
        explanation: σ and its source, coverage, what each pick represents, timings. None for results that
            were made elsewhere.

    Raises:
        InvalidInputError: there are more or fewer scores than chunks, or a score is not finite.

    Example:
        >>> chunk = Chunk("keys-1", "Rotate the keys monthly.", np.array([0.6, 0.8]))
        >>> result = RetrievalResult("When are keys rotated?", [chunk], [0.9])
        >>> len(result), result.top_chunk.id
        (1, 'keys-1')
    """

    query: str
    chunks: list[Chunk]
    scores: list[float]
    metadata: dict[str, Any] = field(default_factory=dict)
    explanation: Explanation | None = None

    @classmethod
    def explained(cls, query: str, chunks: list[Chunk], explanation: Explanation) -> "RetrievalResult":
        """A result whose scores are the gains, and whose metadata are the explanation."""
        return cls(query, chunks, explanation.gain or [], explanation.as_metadata(), explanation)

    def with_explanation(self, **changes: Any) -> "RetrievalResult":
        """The same picks, with more known of them."""
        if self.explanation is None:
            raise InvalidInputError("this result has no explanation to change")
        return self.explained(self.query, self.chunks, replace(self.explanation, **changes))

    def __post_init__(self) -> None:
        if len(self.chunks) != len(self.scores):
            raise InvalidInputError(
                f"{len(self.chunks)} chunks with {len(self.scores)} scores: need one each"
            )
        if not np.isfinite(self.scores).all():
            raise InvalidInputError("scores must be finite numbers: found NaN or infinity")

    def __len__(self) -> int:
        return len(self.chunks)

    @property
    def top_chunk(self) -> Chunk | None:
        """The first chunk, or None where nothing was found."""
        return self.chunks[0] if self.chunks else None

    def __repr__(self) -> str:
        from dartboard.explain.result_view import view_of
        from dartboard.explain.text_table import as_text

        return as_text(view_of(self, with_map=False))

    def _repr_html_(self) -> str:
        """What a notebook shows: a map of the passages, gains and coverage, and their texts."""
        from dartboard.explain.html_card import as_html
        from dartboard.explain.result_view import view_of

        return as_html(view_of(self))


@dataclass(slots=True)
class Dataset:
    """Chunks, queries, and which chunks are relevant to which query.

    Args:
        name: what reports call the data set.
        chunks: the corpus; ids are unique, vectors have one length.
        queries: the questions.
        ground_truth: query id to the ids of its relevant chunks.
        metadata: anything else that is known.
        query_ids: the ids of ``queries``, in order. By default each query is its own id; if
            ``ground_truth`` has as many keys as there are queries and they are not the queries, its keys are
            the ids.

    Raises:
        InvalidInputError: an id occurs twice, a query is empty, or the ground truth names an unknown query
            or chunk.

    Example:
        >>> chunk = Chunk("keys-1", "Rotate the keys monthly.", np.array([0.6, 0.8]))
        >>> data = Dataset("runbook", [chunk], ["When are keys rotated?"], {"q1": ["keys-1"]})
        >>> data.query_ids
        ['q1']
    """

    name: str
    chunks: list[Chunk]
    queries: list[str]
    ground_truth: dict[str, list[str]]
    metadata: dict[str, Any] = field(default_factory=dict)
    query_ids: list[str] = field(default_factory=list)

    @property
    def worded(self) -> bool:
        """Whether selection may read the texts: near-copies by noise have the words of their originals."""
        return "cosine" not in self.metadata.get("redundancy", {})

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInputError("a data set needs a name")
        if not all(isinstance(query, str) and query.strip() for query in self.queries):
            raise InvalidInputError(f"data set {self.name!r}: a query is empty")
        if not self.query_ids:
            named = set(self.ground_truth) <= set(self.queries) or len(self.ground_truth) != len(self.queries)
            self.query_ids = list(self.queries if named else self.ground_truth)
        if len(self.query_ids) != len(self.queries):
            raise InvalidInputError(
                f"data set {self.name!r}: {len(self.query_ids)} query ids for {len(self.queries)} queries"
            )
        if repeated := _repeated(self.query_ids):
            raise InvalidInputError(f"data set {self.name!r}: query id {repeated!r} occurs twice")
        ids = [chunk.id for chunk in self.chunks]
        if repeated := _repeated(ids):
            raise InvalidInputError(f"data set {self.name!r}: chunk id {repeated!r} occurs twice")
        if unknown := set(self.ground_truth) - set(self.query_ids):
            raise InvalidInputError(
                f"data set {self.name!r}: ground truth for unknown query {min(unknown)!r}"
            )
        known = set(ids)
        for query_id, relevant in self.ground_truth.items():
            if missing := set(relevant) - known:
                raise InvalidInputError(
                    f"data set {self.name!r}: query {query_id!r} refers to unknown chunk {min(missing)!r}"
                )
        check_same_dimension(self.chunks)

    def __len__(self) -> int:
        return len(self.queries)


def check_same_dimension(chunks: Sequence[Chunk]) -> None:
    """All chunks carry vectors of one length, or the first that differs is named."""
    for chunk in chunks:
        if chunk.embedding.size != chunks[0].embedding.size:
            raise InvalidInputError(
                f"chunk {chunk.id!r} has {chunk.embedding.size} dimensions where chunk {chunks[0].id!r} "
                f"has {chunks[0].embedding.size}: encode all chunks with one model"
            )


def _repeated(ids: Sequence[str]) -> str | None:
    seen: set[str] = set()
    for id_ in ids:
        if id_ in seen:
            return id_
        seen.add(id_)
    return None
