"""Query and chunks in, the chunks that together say most out.

Triage takes the nearest ``triage_k`` chunks; selection picks from them. What differs between the variants
is only who says how close two texts are (:class:`DartboardConfig`).
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Literal, Self, Unpack, overload

import numpy as np

from dartboard.blas import threads_for
from dartboard.calibration import Calibration
from dartboard.config import DartboardConfig, RerankerType
from dartboard.copies import copies_of, preference
from dartboard.deadline import check
from dartboard.embeddings.base import EmbeddingModel, PairScorer
from dartboard.embeddings.reader_tokenizer import Tokenizer, reader_tokenizer
from dartboard.embeddings.texts import count_tokens
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.near_duplicates import groups_of_close
from dartboard.pair_scores import crossencoder_pool, hybrid_pool
from dartboard.relevance import Relevance, SimilarityLevels, assess, assess_best, known_levels
from dartboard.retrievers.candidates import Candidates
from dartboard.retrievers.query import check_query
from dartboard.search_options import SearchKeywords, SearchOptions, as_filter
from dartboard.selection import (
    Dartboard,
    Limits,
    Pool,
    from_embeddings,
    from_log_probs,
    in_order_of,
)
from dartboard.selection.kernel import Sigma, distances, prepared
from dartboard.selection.pool import check_weights, distinct_rows, spread_to_neighbours, with_lowest
from dartboard.selection.result import Selection
from dartboard.selection.select import method_of, with_pages_before
from dartboard.stores.filters import Filter, comparisons
from dartboard.types import (
    Chunk,
    Explanation,
    FloatArray,
    IntArray,
    RetrievalResult,
    check_matrix,
    check_same_dimension,
    check_vector,
)
from dartboard.utils import logsumexp_stable, row_dots, unit_rows
from dartboard.vocab import TokenDistances, VocabularyMethod, build_token_vocabulary

__all__ = ["DartboardConfig", "DartboardRetriever"]

_SEEN = "\x1fseen "  # begins the ids of vectors that were seen; no chunk of a collection has such an id


class DartboardRetriever:
    """Take the nearest chunks by cosine, then select from them with Dartboard.

    This is the retriever of the specification, over a list of chunks. Over a collection it is the engine's
    selector, and a :class:`dartboard.retrievers.Retriever` finds the candidates.

    Args:
        config: σ, how many chunks, the variant.
        embedding_model: the model that made the chunks' vectors; it encodes the query.
        token_embeddings: ``(vocab_size, d)``: a vocabulary as targets instead of the candidates. Pair scores
            know no tokens, so ``crossencoder`` always uses the candidates.
        cross_encoder: the pair scorer of the variants ``crossencoder`` and ``hybrid``.
        calibration: what ``sigma="auto"`` uses, if it was measured.
        similarity_levels: by which a result says whether anything relevant was found
            (:func:`dartboard.relevance.measure_levels`); by default those known of the model.

    Raises:
        ConfigError: ``crossencoder`` without a pair scorer, or ``hybrid`` with Euclidean distance.
        InvalidInputError: the token embeddings cannot be used.

    Example:
        >>> from dartboard import Chunk, default_model
        >>> model = default_model()
        >>> texts = ["Rotate the keys monthly.", "Keys are rotated every month.", "Logs are kept for a week."]
        >>> vectors = model.encode_documents(texts)
        >>> corpus = [Chunk(f"c{i}", text, vector) for i, (text, vector) in enumerate(zip(texts, vectors))]
        >>> retriever = DartboardRetriever(DartboardConfig(top_k=2), model)
        >>> chunks = retriever.retrieve("How long are logs kept, when are keys rotated?", corpus)
        >>> [chunk.id for chunk in chunks]
        ['c2', 'c1']
    """

    def __init__(
        self,
        config: DartboardConfig,
        embedding_model: EmbeddingModel,
        token_embeddings: FloatArray | None = None,
        cross_encoder: PairScorer | None = None,
        *,
        calibration: Calibration | None = None,
        similarity_levels: SimilarityLevels | None = None,
    ) -> None:
        if calibration is not None:
            calibration.check(embedding_model.fingerprint, config.distance)
        self.calibration = calibration
        self.similarity_levels = similarity_levels or known_levels(embedding_model)
        self.config = config
        self.embedding_model = embedding_model
        self.cross_encoder = cross_encoder
        self._tokens = None
        if token_embeddings is not None:
            vocabulary = check_matrix(
                token_embeddings, name="token_embeddings", dim=embedding_model.embedding_dim
            )
            self._tokens = TokenDistances(vocabulary, config.distance)
        self._defaults = SearchOptions(
            k=config.top_k,
            sigma=config.sigma,
            sigma_min=config.sigma_min,
            reranker=config.reranker_type,
            triage_k=config.triage_k,
        )
        self.variant_of(self._defaults)

    @classmethod
    def with_vocabulary(
        cls,
        config: DartboardConfig,
        embedding_model: EmbeddingModel,
        method: VocabularyMethod = "words",
        cross_encoder: PairScorer | None = None,
    ) -> Self:
        """Make a retriever whose targets are a vocabulary of ``config.token_vocab_size`` tokens.

        Args:
            config, embedding_model, cross_encoder: as for the class.
            method: how the vocabulary is made: ``words``, ``subwords`` or ``clusters``. It is cached.

        Returns:
            The retriever.
        """
        tokens = build_token_vocabulary(embedding_model, config.token_vocab_size, method)
        return cls(config, embedding_model, tokens, cross_encoder)

    @property
    def variant(self) -> RerankerType:
        """What is really used: ``hybrid`` without a pair scorer is ``cosine``."""
        return self.variant_of(self._defaults)

    def variant_of(self, options: SearchOptions) -> RerankerType:
        """The variant for these options, once everything that it needs is there."""
        if options.reranker == "crossencoder" and self.cross_encoder is None:
            raise ConfigError(
                "reranker_type 'crossencoder' needs a cross_encoder: pass one (CrossEncoder, "
                "LateInteraction), or choose 'cosine'"
            )
        if options.reranker != "hybrid":
            return options.reranker
        if self.cross_encoder is None:
            return "cosine"
        if self.config.distance == "euclidean":
            raise ConfigError("the hybrid variant compares passages by cosine: set distance='scaled_cosine'")
        return "hybrid"

    @overload
    def retrieve(
        self, query: str, corpus: list[Chunk], return_scores: Literal[False] = False
    ) -> list[Chunk]: ...
    @overload
    def retrieve(
        self, query: str, corpus: list[Chunk], return_scores: Literal[True]
    ) -> tuple[list[Chunk], list[float]]: ...
    def retrieve(
        self, query: str, corpus: list[Chunk], return_scores: bool = False
    ) -> list[Chunk] | tuple[list[Chunk], list[float]]:
        """Return the ``top_k`` chunks, in the order of selection.

        Args:
            query: what to ask.
            corpus: chunks with their vectors.
            return_scores: whether to return the marginal gain of each chunk as well.

        Returns:
            The chunks, or the chunks and their gains.

        Raises:
            InvalidInputError: the query or corpus is empty, an id occurs twice, or vectors have different
                lengths. It is a ``ValueError``.
        """
        result = self.search(query, corpus)
        return (result.chunks, result.scores) if return_scores else result.chunks

    def search(
        self,
        query: str,
        corpus: Sequence[Chunk],
        options: SearchOptions | None = None,
        **changes: Unpack[SearchKeywords],
    ) -> RetrievalResult:
        """As :meth:`retrieve`, with everything that explains the result, and within limits.

        Args:
            query: what to ask.
            corpus: chunks with their vectors.
            options: what is asked for; where it is left out, the configuration says it.
            changes: single options: ``k=8``, ``token_budget=1500``, ``method="mmr"``.

        Returns:
            The chunks with their gains, coverage, σ and timings.

        Raises:
            InvalidInputError: as in :meth:`retrieve`, an id to include or seen is not in the corpus, or
                ``where`` compares a field that no chunk has.
            ConfigError: an option is outside its range.
        """
        options = self._options(options, changes, "search")
        started = time.perf_counter()
        questions = self._question_vectors(self._embed(query), options)
        embedded = time.perf_counter()
        known = _by_id(corpus)
        required, left_out = (*options.must_include, *options.seen_ids), {*options.exclude, *options.seen_ids}
        for name in set(required) - known.keys():
            option = "must_include" if name in options.must_include else "seen"
            raise InvalidInputError(f"no chunk {name!r} in the corpus: check {option}", field=option)
        allowed = [c for c in corpus if c.id not in left_out] if left_out else corpus
        if options.where is not None:
            allowed = _matching(options.where, allowed)
        if not allowed and not required and corpus:
            return _nothing_found(query, questions, options, self.similarity_levels)
        found: dict[str, Chunk] = {}
        for question in questions:
            found |= {chunk.id: chunk for chunk in self._triage(question, allowed, options.candidates_each)}
        candidates = list((found | {name: known[name] for name in required}).values())
        triaged = time.perf_counter()
        result = self.choose(query, questions, candidates, options)
        seconds = {
            "embed": embedded - started,
            "triage": triaged - embedded,
            "select": result.metadata["seconds"]["select"],
        }
        return result.with_explanation(seconds=seconds)

    def choose(
        self,
        query: str,
        query_embedding: FloatArray,
        candidates: Sequence[Chunk] | Candidates,
        options: SearchOptions | None = None,
        *,
        scores: Sequence[float] | FloatArray | None = None,
        costs: Sequence[float] | None = None,
        savings: Sequence[tuple[int, int, float]] = (),
        adjacent: Sequence[tuple[int, int]] = (),
        **changes: Unpack[SearchKeywords],
    ) -> RetrievalResult:
        """Select from candidates that were found already; options as in :meth:`search`.

        ``scores``, one a candidate, are those of a retriever whose order should count instead of the
        distances of the vectors. Their scale is the retriever's own, so only their order is taken: the
        best candidate gets the largest query probability of the pool, the next one the second largest …
        Equal scores share their mean; under ``top_k``, where the order is all, they go by id.
        Where a pair scorer is in use (``crossencoder``, ``hybrid``), its order counts and ``scores`` do not.
        Of :class:`Candidates`, texts are read from their store only where they have a say, and for the picks.

        Of several questions (``also``), ``query_embedding`` may have a row for each, ``(m, d)``, and
        ``scores`` too, ``(m, n)``; a single row is the query's, and the others are encoded here.

        ``costs`` and ``savings`` are those of :class:`Limits`, where tokens of the texts alone are not what
        counts. ``adjacent`` are pairs of neighbours in a document (:func:`spread_to_neighbours`).
        """
        options = self._options(options, changes, "choose")
        started = time.perf_counter()
        if not isinstance(candidates, Candidates):
            candidates = Candidates.from_chunks(candidates)
        questions = self._question_vectors(query_embedding, options)
        given, found = options, len(candidates)
        if options.seen_vectors is not None:  # targets that are covered, not candidates
            candidates, options = _with_seen_vectors(candidates, options)
            scores = None if scores is None else with_lowest(scores, len(options.seen))
            costs = None if costs is None else [*costs, *[1.0] * len(options.seen)]
        method = method_of(options.method)
        floor = None if self.similarity_levels is None else self.similarity_levels.unrelated
        limits = self.limits(candidates, options, costs)
        limits = replace(limits, savings=savings, relevance_floor=floor)
        limits = with_pages_before(limits, options.offset, method)
        with threads_for(len(candidates)):
            pool = self.pool(query, questions, candidates, options, scores=scores)
            pool = spread_to_neighbours(pool, adjacent)
            check()
            selection = method.select(pool, limits).after(options.offset)
        on_tokens = pool.target_of is None
        selected = time.perf_counter()
        picks = selection.indices.tolist()
        chunks = candidates.chunks(picks)
        copies = None
        if options.prefer is not None:
            copies = copies_of(
                picks, candidates, pool.groups, options.prefer, _cosines(pool, candidates, picks)
            )
        reading = time.perf_counter() - selected
        used = {
            "sigma": options.sigma,
            "top_k": options.k,
            "triage_k": options.triage_k,
            "reranker_type": options.reranker,
        }
        explanation = Explanation(
            method=selection.method,
            variant=self.variant_of(options),
            targets="vocabulary" if on_tokens else "candidates",
            sigma=selection.sigma.value,
            sigma_source=self.sigma_source(selection.sigma, options),
            gain=selection.gains.tolist(),
            coverage=selection.coverage.tolist(),
            similarity=selection.similarity.tolist(),
            by_relevance=None if selection.by_relevance is None else selection.by_relevance.tolist(),
            stands_for=[
                stands.tolist() if on_tokens else [candidates.ids[i] for i in stands if i < found]
                for stands in selection.stands_for
            ],
            bound=selection.bound,
            candidates=found,
            near_copies=selection.near_copies,
            questions=_question_coverage(query, options, selection),
            serves=None if selection.question_of is None else selection.question_of.tolist(),
            covered_before=selection.covered_before if len(options.seen) else None,
            copies=copies,
            warnings=[selection.sigma.warning] if selection.sigma.warning else None,
            relevance=self._assessed(pool, questions, candidates.vectors[:found]),
            config=asdict(self.config) | used | selection.parameters,
            seconds={"select": time.perf_counter() - started - reading, "read": reading},
            options=given,
        )
        return RetrievalResult.explained(query, chunks, explanation)

    def pool(
        self,
        query: str,
        query_embedding: FloatArray,
        candidates: Sequence[Chunk] | Candidates,
        options: SearchOptions | None = None,
        *,
        scores: Sequence[float] | FloatArray | None = None,
        **changes: Unpack[SearchKeywords],
    ) -> Pool:
        """What :meth:`choose` selects from; numbers are the candidates' positions."""
        options = self._options(options, changes, "pool")
        if not isinstance(candidates, Candidates):
            candidates = Candidates.from_chunks(candidates)
        ranking = scores if self.variant_of(options) == "cosine" else None  # a pair scorer's own order counts
        questions = self._question_vectors(query_embedding, options)
        pool = self._pool(query, questions, candidates, options, ranking)
        if ranking is not None and len(questions) == 1 and method_of(options.method).name == "top_k":
            return pool.reweighted(in_order_of(np.ravel(ranking), pool.relevance, strictly_by=candidates.ids))
        return pool

    def _question_vectors(self, query_embedding: FloatArray, options: SearchOptions) -> FloatArray:
        """``(m, d)`` the query and the questions in ``also``; those without a vector are encoded now."""
        if np.ndim(query_embedding) == 2 and len(query_embedding) == len(options.also) + 1:
            return query_embedding
        first = check_vector(query_embedding, name="query embedding")
        return np.stack([first, *(self.embedding_model.encode_query(text) for text in options.also)])

    def limits(
        self, candidates: Candidates, options: SearchOptions, costs: Sequence[float] | None = None
    ) -> Limits:
        """The limits with what they need to know of each candidate; texts are read only for these.

        ``costs`` are the candidates' tokens, where they are known already.
        """
        capped = options.max_per or {}
        needed = options.token_budget is not None or options.max_per_source is not None or capped
        chunks = candidates.chunks() if needed else []
        values = {name: [chunk.metadata.get(name) for chunk in chunks] for name in capped}
        for name, found in values.items():
            if found and all(value is None for value in found):
                raise InvalidInputError(_unknown_field(name, "max_per", chunks), field="max_per")
        sources = [chunk.metadata.get(options.source_field) for chunk in chunks]
        if options.max_per_source is not None and all(source is None for source in sources):
            problem = _unknown_field(options.source_field, "max_per_source", chunks)
            raise InvalidInputError(problem, field="source_field")
        if costs is None:
            costs = [] if options.token_budget is None else self.count_tokens(chunks, options.tokenizer)
        return options.limits(
            costs=costs,
            sources=sources,
            ids=candidates.ids,
            fields=values,
        )

    def _assessed(self, pool: Pool, questions: FloatArray, vectors: FloatArray) -> Relevance:
        """Whether a candidate is relevant; a pool of vectors knows their cosines to the questions."""
        if pool.origin is not None and pool.origin.vectors:
            return assess_best(float(pool.similarity[: len(vectors)].max()), self.similarity_levels)
        return assess(questions, vectors, self.similarity_levels)

    def sigma_source(self, sigma: Sigma, options: SearchOptions) -> str:
        """Where a σ came from. Under ``"auto"`` only a calibration gives it."""
        if self.calibration is None or options.sigma != "auto" or options.reranker == "crossencoder":
            return sigma.source
        return "calibration" if sigma.source == "given" else sigma.source

    def _options(self, given: SearchOptions | None, changes: SearchKeywords, function: str) -> SearchOptions:
        if given is None and changes.get("token_budget") is not None:
            changes = {"k": None, **changes}  # a budget stands in for top_k
        return SearchOptions.of(given or self._defaults, changes, function)

    def _embed(self, query: str) -> FloatArray:
        check_query(query)
        return self.embedding_model.encode_query(query)

    def _triage(
        self, query_embedding: FloatArray, corpus: Sequence[Chunk], count: int | None = None
    ) -> list[Chunk]:
        """The ``triage_k`` chunks nearest to the query by cosine; equal ones by id, so that a run repeats."""
        if not corpus:
            raise InvalidInputError("corpus is empty: give at least one chunk")
        asked = check_vector(query_embedding, name="query embedding")
        check_same_dimension(corpus)
        if corpus[0].embedding.size != asked.size:
            raise InvalidInputError(
                f"chunk {corpus[0].id!r} has {corpus[0].embedding.size} dimensions where the query has "
                f"{asked.size}: encode both with one model"
            )
        # Not a matrix product: BLAS rounds a row by where it stands, and equal chunks must come out equal.
        similarity = np.einsum("ij,j->i", unit_rows(_vectors(corpus)), unit_rows(asked[None])[0])
        if not np.isfinite(similarity).all():
            bad = corpus[int(np.flatnonzero(~np.isfinite(similarity))[0])]
            check_vector(bad.embedding, name=f"embedding of chunk {bad.id!r}")
        count = min(count or self.config.triage_k, len(corpus))
        floor = np.partition(similarity, len(corpus) - count)[len(corpus) - count]
        near = np.flatnonzero(similarity >= floor)
        ranked = sorted(near.tolist(), key=lambda i: (-similarity[i], corpus[i].id))
        return [corpus[i] for i in ranked[:count]]

    def _compute_distances(
        self, query_embedding: FloatArray, candidates: Sequence[Chunk]
    ) -> tuple[FloatArray, FloatArray]:
        """Distances of the candidates' vectors to the query, ``(K,)``, and to one another, ``(K, K)``.

        Exact copies have a distance of exactly 0, and equal distances to all others.
        """
        kind = self.config.distance
        vectors = prepared(_vectors(candidates), kind)
        asked = prepared(check_vector(query_embedding, name="query embedding")[None], kind)[0]
        if kind == "scaled_cosine":
            to_query = np.maximum(0.5 - 0.5 * row_dots(vectors, asked), 0.0)
        else:
            to_query = np.sqrt(row_dots(vectors - asked, vectors - asked))
        rows, row_of = distinct_rows(vectors, -to_query)
        if len(rows) == len(vectors):
            return to_query, distances(vectors, vectors, kind)
        # A matrix product rounds equal rows differently: each distinct row goes into it once.
        distinct = vectors[rows]
        return to_query, distances(distinct, distinct, kind)[np.ix_(row_of, row_of)]

    def _greedy_selection(
        self, query_log_probs: FloatArray, pairwise_log_probs: FloatArray, k: int
    ) -> list[int]:
        """The ``k`` picks in order, from log P(c|q) and ``pairwise_log_probs[c, t]`` = log P(t|c)."""
        pool = from_log_probs(query_log_probs, pairwise_log_probs)
        picks: list[int] = Dartboard().select(pool, Limits(k=k, relevance_below=0.0)).indices.tolist()
        return picks

    def _compute_dartboard_score(
        self,
        selected_indices: list[int],
        candidate_idx: int,
        query_log_probs: FloatArray,
        pairwise_log_probs: FloatArray,
    ) -> float:
        """``log Σ_t P(t|q) · max_{g ∈ selected ∪ {candidate}} P(t|g)``: the objective with one more pick."""
        covered = np.asarray(pairwise_log_probs)[[*selected_indices, candidate_idx]].max(axis=0)
        return logsumexp_stable(np.asarray(query_log_probs) + covered)

    def _pool(
        self,
        query: str,
        questions: FloatArray,
        candidates: Candidates,
        options: SearchOptions,
        ranking: Sequence[float] | FloatArray | None,
    ) -> Pool:
        variant, scorer = self.variant_of(options), self.cross_encoder
        asked, weights = [query, *options.also], check_weights(options.weights, len(questions))
        texts = [] if variant == "cosine" else [chunk.text for chunk in candidates.chunks()]
        groups = partial(_near_duplicates, candidates=candidates, seen=options.seen_ids)
        if variant == "crossencoder" and scorer is not None:
            scaling = self.config.score_scaling
            unit = unit_rows(candidates.vectors, np.float64)
            pool = crossencoder_pool(
                scorer, asked, texts, options.sigma, scaling, weights, groups(unit @ unit.T)
            )
            return replace(pool, preference=_preference(candidates, options))
        sigma = options.sigma
        if sigma == "auto" and self.calibration is not None:
            sigma = self.calibration.sigma_or_auto()
        building: dict[str, Any] = {
            "sigma": options.sigma if variant == "hybrid" and self._tokens is None else sigma,
            "model_sigma": self.embedding_model.sigma if self.config.distance == "scaled_cosine" else None,
            "groups": groups,
            "ranking": ranking,
            "weights": weights,
            "prefer": _preference(candidates, options),
        }
        if self._tokens is not None:
            pool = self._tokens.pool(questions, candidates.vectors, **building)
        else:
            distance = self.config.distance
            pool = from_embeddings(questions, candidates.vectors, distance=distance, **building)
        if variant == "hybrid" and scorer is not None:
            return hybrid_pool(scorer, asked, texts, options.sigma, pool, weights)
        return pool

    def count_tokens(self, chunks: Sequence[Chunk], tokenizer: Tokenizer | None = None) -> list[int]:
        """What each chunk costs of a token budget, by the embedding model or the reader's ``tokenizer``."""
        counter = self.embedding_model if tokenizer is None else reader_tokenizer(tokenizer)
        return count_tokens(counter, [chunk.text for chunk in chunks])


def _near_duplicates(cosines: FloatArray, *, candidates: Candidates, seen: Sequence[str]) -> IntArray:
    """``(n,)`` near-duplicate groups. What was seen leads its group, so that its copies are found with it."""
    if not seen:
        return groups_of_close(cosines, read=candidates.fingerprints)
    shown = set(seen)
    order = sorted(range(len(candidates)), key=lambda at: candidates.ids[at] not in shown)
    groups = np.empty(len(order), dtype=np.intp)
    ordered = candidates.take(order)
    groups[order] = groups_of_close(cosines[np.ix_(order, order)], read=ordered.fingerprints)
    return groups


def _cosines(pool: Pool, candidates: Candidates, picks: Sequence[int]) -> FloatArray:
    """``(picks, n)`` cosines of picks to all candidates; a pool of vectors has them."""
    if pool.origin is not None and pool.origin.vectors:
        return pool.closeness[np.ix_(pool.row_of[list(picks)], pool.row_of)]
    unit = unit_rows(candidates.vectors, np.float64)
    cosines: FloatArray = unit[list(picks)] @ unit.T
    return cosines


def _preference(candidates: Candidates, options: SearchOptions) -> FloatArray | None:
    """``(n,)`` which of several near-duplicates to pick, by the metadata field in ``prefer``."""
    if options.prefer is None:
        return None
    values = [chunk.metadata.get(options.prefer) for chunk in candidates.chunks()]
    if all(value is None for value in values):
        raise InvalidInputError(_unknown_field(options.prefer, "prefer", candidates.chunks()))
    return preference(values)


def _unknown_field(name: str, option: str, chunks: Sequence[Chunk]) -> str:
    there = ", ".join(sorted({field for chunk in chunks for field in chunk.metadata})) or "none"
    return f"no candidate has {name!r} in its metadata: check {option}. The fields are {there}"


def _question_coverage(
    query: str, options: SearchOptions, selection: Selection
) -> list[dict[str, Any]] | None:
    """Each question with its weight and how much of its probable targets is covered."""
    if selection.question_coverage is None:
        return None
    texts, weights = [query, *options.also], check_weights(options.weights, len(options.also) + 1)
    return [
        {"text": text, "weight": float(weight), "coverage": float(coverage)}
        for text, weight, coverage in zip(texts, weights, selection.question_coverage, strict=True)
    ]


def _with_seen_vectors(candidates: Candidates, options: SearchOptions) -> tuple[Candidates, SearchOptions]:
    """Vectors that were seen as further candidates without text, which are never picked.

    Raises:
        InvalidInputError: they have another dimension, or a pair scorer would need their texts.
    """
    if options.reranker != "cosine":
        raise InvalidInputError("vectors in seen have no text for a reranker to read: give ids of chunks")
    check_matrix(options.seen, name="seen", dim=candidates.vectors.shape[1])
    chunks = [
        Chunk.trusted(f"{_SEEN}{at}", "", vector, {}) for at, vector in enumerate(np.asarray(options.seen))
    ]
    lowest = candidates.scores.min() if len(candidates) else 0.0
    shown = Candidates.from_chunks(chunks, [lowest] * len(chunks))
    return candidates.followed_by(shown), replace(options, seen=shown.ids)


def _vectors(chunks: Sequence[Chunk]) -> FloatArray:
    return np.stack([chunk.embedding for chunk in chunks])


def _by_id(corpus: Sequence[Chunk]) -> dict[str, Chunk]:
    if not isinstance(corpus, Sequence) or not all(isinstance(chunk, Chunk) for chunk in corpus):
        raise InvalidInputError("corpus must be a list of Chunk: Chunk(id, text, embedding)")
    known = {chunk.id: chunk for chunk in corpus}
    if len(known) < len(corpus):
        seen: set[str] = set()
        for chunk in corpus:
            if chunk.id in seen:
                raise InvalidInputError(
                    f"chunk id {chunk.id!r} occurs twice in the corpus: ids must be unique"
                )
            seen.add(chunk.id)
    return known


def _matching(where: Filter | str, corpus: Sequence[Chunk]) -> list[Chunk]:
    """The chunks whose metadata match a filter."""
    condition = as_filter(where)
    if condition is None:
        return list(corpus)
    known = {field for chunk in corpus for field in chunk.metadata}
    compared = {str(one.field) for one in comparisons(condition) if hasattr(one, "field")}
    for field in sorted(compared - known):
        raise InvalidInputError(_unknown_field(field, "where", corpus), field="where")
    return [chunk for chunk in corpus if condition.matches(chunk.metadata, chunk.id)]


def _nothing_found(
    query: str, questions: FloatArray, options: SearchOptions, levels: SimilarityLevels | None
) -> RetrievalResult:
    """The result of a search without candidates."""
    relevance = assess(questions, np.empty((0, questions.shape[1])), levels)
    nothing = Explanation(candidates=0, relevance=relevance, seconds={"select": 0.0}, options=options)
    return RetrievalResult.explained(query, [], nothing)
