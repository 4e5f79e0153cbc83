"""Query and chunks in, the chunks that together say most out.

Triage takes the nearest ``triage_k`` chunks; selection picks from them. What differs between the variants
is only who says how close two texts are (:class:`DartboardConfig`).
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal, Self, overload

import numpy as np

from dartboard.blas import threads_for
from dartboard.calibration import Calibration
from dartboard.config import DartboardConfig
from dartboard.deadline import check
from dartboard.embeddings.base import EmbeddingModel, PairScorer
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.near_duplicates import candidate_groups
from dartboard.pairing import crossencoder_pool, hybrid_pool
from dartboard.relevance import SimilarityLevels, assess, known_levels
from dartboard.retrievers.asking import check_question
from dartboard.retrievers.passages import Passages
from dartboard.selection import (
    Dartboard,
    Limits,
    Method,
    Pool,
    from_embeddings,
    from_log_probs,
)
from dartboard.selection.auto_sigma import DIVISOR
from dartboard.selection.candidates import distinct_rows
from dartboard.selection.kernels import Auto, distances, prepared, row_dots, unit_rows
from dartboard.selection.methods import method_of
from dartboard.selection.result import Sigma
from dartboard.types import (
    Chunk,
    Explanation,
    FloatArray,
    RetrievalResult,
    check_matrix,
    check_same_dimension,
    check_vector,
)
from dartboard.utils import logsumexp_stable
from dartboard.vocab import TokenDistances, VocabularyMethod, build_token_vocabulary

__all__ = ["DartboardConfig", "DartboardRetriever"]


class DartboardRetriever:
    """Retrieval by Dartboard over chunks that carry their vectors.

    ``token_embeddings``, ``(vocab_size, d)``, makes the targets run over a vocabulary instead of over the
    candidates, as the paper has it; pair scores know no tokens, so ``crossencoder`` keeps to candidates.
    ``calibration`` is what ``sigma="auto"`` means, where it was measured. ``similarity_levels`` are those by
    which a result says whether anything relevant was found (:func:`dartboard.relevance.measure_levels`); by
    default those known of the model.
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
        if config.reranker_type == "crossencoder" and cross_encoder is None:
            raise ConfigError(
                "reranker_type 'crossencoder' needs a cross_encoder: pass one (CrossEncoder, "
                "LateInteraction), or choose 'cosine'"
            )
        if calibration is not None:
            calibration.check(embedding_model.fingerprint, config.distance)
            if calibration.temperature and cross_encoder is not None and config.reranker_type == "hybrid":
                calibration.temperature.check(cross_encoder)
        if config.reranker_type == "hybrid" and cross_encoder is not None and config.distance == "euclidean":
            raise ConfigError("the hybrid variant compares passages by cosine: set distance='scaled_cosine'")
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

    @classmethod
    def with_vocabulary(
        cls,
        config: DartboardConfig,
        embedding_model: EmbeddingModel,
        method: VocabularyMethod = "words",
        cross_encoder: PairScorer | None = None,
    ) -> Self:
        """A retriever whose targets are a vocabulary of ``config.token_vocab_size`` tokens, built or kept."""
        tokens = build_token_vocabulary(embedding_model, config.token_vocab_size, method)
        return cls(config, embedding_model, tokens, cross_encoder)

    @property
    def variant(self) -> Literal["cosine", "crossencoder", "hybrid"]:
        """What is really used: ``hybrid`` without a pair scorer is ``cosine``."""
        kind = self.config.reranker_type
        return "cosine" if kind == "hybrid" and self.cross_encoder is None else kind

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
        """The ``top_k`` chunks in the order of selection; with scores, the gain of each.

        Raises ``ValueError`` for an empty query, an empty corpus, or chunks that do not fit together.
        """
        result = self.search(query, corpus)
        return (result.chunks, result.scores) if return_scores else result.chunks

    def search(
        self,
        query: str,
        corpus: Sequence[Chunk],
        *,
        k: int | None = None,
        method: Method | str = "dartboard",
        token_budget: int | None = None,
        must_include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        max_per_source: int | None = None,
        source_field: str = "source",
        min_gain_share: float = 0.0,
        min_similarity: float | None = None,
    ) -> RetrievalResult:
        """As :meth:`retrieve`, with everything that explains the result, and within limits.

        ``k`` is ``top_k`` unless a ``token_budget`` stands in for it, which is counted by the embedding
        model's tokenizer where it has one, by words otherwise. ``must_include`` and ``exclude`` are chunk
        ids; ``max_per_source`` counts chunks whose metadata agree in ``source_field``. ``method`` selects
        by other means, for comparison.
        """
        chosen = method_of(method)
        started = time.perf_counter()
        query_embedding = self._embed(query)
        embedded = time.perf_counter()
        known = _by_id(corpus)
        excluded = set(exclude)
        if both := excluded & set(must_include):
            raise ConfigError(f"chunk {min(both)!r} is both in must_include and in exclude")
        for name in {*must_include, *excluded} - known.keys():
            raise InvalidInputError(f"no chunk {name!r} in the corpus: check must_include and exclude")
        candidates = self._triage(
            query_embedding, [c for c in corpus if c.id not in excluded] if excluded else corpus
        )
        candidates += [known[name] for name in must_include if all(c.id != name for c in candidates)]
        triaged = time.perf_counter()
        result = self.choose(
            query,
            query_embedding,
            candidates,
            k=k,
            method=chosen,
            token_budget=token_budget,
            must_include=must_include,
            max_per_source=max_per_source,
            source_field=source_field,
            min_gain_share=min_gain_share,
            min_similarity=min_similarity,
        )
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
        candidates: Sequence[Chunk] | Passages,
        *,
        scores: Sequence[float] | None = None,
        k: int | None = None,
        method: Method | str = "dartboard",
        token_budget: int | None = None,
        must_include: Sequence[str] = (),
        max_per_source: int | None = None,
        source_field: str = "source",
        min_gain_share: float = 0.0,
        min_similarity: float | None = None,
    ) -> RetrievalResult:
        """Select from candidates that were found already; limits as in :meth:`search`.

        ``scores``, one a candidate, are those of a retriever whose order should count instead of the
        distances of the vectors. Their scale is the retriever's own, so only their order is taken: the
        best candidate gets the largest query probability of the pool, the next one the second largest …
        Equal scores share their mean; under ``top_k``, where the order is all, they go by id.
        Where a pair scorer is in use (``crossencoder``, ``hybrid``), its order counts and ``scores`` do not.
        Of :class:`Passages`, texts are read from their store only where they have a say, and for the picks.
        """
        started = time.perf_counter()
        passages = candidates if isinstance(candidates, Passages) else Passages.of(candidates)
        place = {name: i for i, name in enumerate(passages.ids)} if must_include else {}
        limits = Limits(
            k=self.config.top_k if k is None and token_budget is None else k,
            token_budget=token_budget,
            costs=None if token_budget is None else self._count_tokens(passages.chunks()),
            must_include=[place[name] for name in must_include],
            max_per_source=max_per_source,
            sources=None
            if max_per_source is None
            else [_source(chunk, source_field) for chunk in passages.chunks()],
            min_gain_share=min_gain_share,
            min_similarity=min_similarity,
        )
        chosen = method_of(method)
        with threads_for(len(passages)):
            pool = self.pool(query, query_embedding, passages, scores=scores, method=chosen)
            check()
            selection = chosen.select(pool, limits)
        on_tokens = pool.target_of is None
        selected = time.perf_counter()
        chunks = passages.chunks(selection.indices.tolist())
        reading = time.perf_counter() - selected
        explanation = Explanation(
            method=selection.method,
            variant=self.variant,
            targets="vocabulary" if on_tokens else "candidates",
            sigma=selection.sigma.value,
            sigma_source=self._source_of(selection.sigma),
            gain=selection.gains.tolist(),
            coverage=selection.coverage.tolist(),
            similarity=selection.similarity.tolist(),
            stands_for=[
                stands.tolist() if on_tokens else [passages.ids[i] for i in stands]
                for stands in selection.stands_for
            ],
            bound=selection.bound,
            candidates=len(passages),
            near_copies=selection.near_copies,
            relevance=assess(query_embedding, passages.vectors, self.similarity_levels),
            config=asdict(self.config) | {"top_k": limits.k} | selection.parameters,
            seconds={"select": time.perf_counter() - started - reading, "read": reading},
        )
        return RetrievalResult.explained(query, chunks, explanation)

    def pool(
        self,
        query: str,
        query_embedding: FloatArray,
        candidates: Sequence[Chunk] | Passages,
        *,
        scores: Sequence[float] | None = None,
        method: Method | str = "dartboard",
    ) -> Pool:
        """What :meth:`choose` selects from; numbers are the candidates' positions."""
        passages = candidates if isinstance(candidates, Passages) else Passages.of(candidates)
        ranking = scores if self.variant == "cosine" else None  # a pair scorer's own order counts
        pool = self._pool(query, query_embedding, passages, ranking)
        if ranking is not None and method_of(method).name == "top_k":
            return pool.reweighted(_strictly(ranking, passages.ids, pool.relevance))
        return pool

    def _source_of(self, sigma: Sigma) -> str:
        """Under ``"auto"`` nobody but a calibration gives σ, or the rule another divisor."""
        if self.calibration is None or self.config.sigma != "auto" or self.variant == "crossencoder":
            return sigma.source
        ruled = self.calibration.kind == "divisor" and sigma.source == "candidates"
        return "calibration" if ruled or sigma.source == "given" else sigma.source

    def _embed(self, query: str) -> FloatArray:
        check_question(query)
        return self.embedding_model.encode_query(query)

    def _triage(self, query_embedding: FloatArray, corpus: Sequence[Chunk]) -> list[Chunk]:
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
        count = min(self.config.triage_k, len(corpus))
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
        picks: list[int] = Dartboard().select(pool, Limits(k=k)).indices.tolist()
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
        query_embedding: FloatArray,
        candidates: Passages,
        ranking: Sequence[float] | None,
    ) -> Pool:
        config = self.config
        sigma, divisor = config.sigma, DIVISOR
        if sigma == "auto" and self.calibration is not None:
            sigma, divisor = self.calibration.sigma_or_rule()
        temperature = self._temperature()
        if self.variant == "hybrid" and self._tokens is None:
            sigma = temperature
        scored = self.variant != "cosine"
        texts = [chunk.text for chunk in candidates.chunks()] if scored else []
        vectors = candidates.vectors
        groups = candidate_groups(vectors, read=candidates.fingerprints)
        if self.variant == "crossencoder" and self.cross_encoder is not None:
            pool = crossencoder_pool(self.cross_encoder, query, texts, config.sigma, config.score_scaling)
            return replace(pool, groups=groups)
        known = self.embedding_model.sigma if config.distance == "scaled_cosine" else None
        if self._tokens is not None:
            pool = self._tokens.pool(
                query_embedding,
                vectors,
                sigma=sigma,
                model_sigma=known,
                divisor=divisor,
                groups=groups,
                ranking=ranking,
            )
        else:
            pool = from_embeddings(
                query_embedding,
                vectors,
                sigma=sigma,
                distance=config.distance,
                model_sigma=known,
                divisor=divisor,
                groups=groups,
                ranking=ranking,
            )
        if self.variant == "hybrid" and self.cross_encoder is not None:
            return hybrid_pool(self.cross_encoder, query, texts, temperature, pool)
        return pool

    def _temperature(self) -> float | Auto:
        """σ of the hybrid variant: as configured, else as calibrated, else the spread of the scores."""
        stored = self.calibration.temperature if self.calibration is not None else None
        return self.config.sigma if stored is None or self.config.sigma != "auto" else stored.value_or_auto()

    def _count_tokens(self, chunks: Sequence[Chunk]) -> list[int]:
        texts = [chunk.text for chunk in chunks]
        count = getattr(self.embedding_model, "count_tokens", None)
        counts = count(texts) if count else [len(text.split()) for text in texts]
        # A tokenizer may take a word of any length for one unknown token.
        return [max(1, tokens, len(text) // 16) for tokens, text in zip(counts, texts, strict=True)]


def _strictly(scores: Sequence[float], ids: Sequence[str], values: FloatArray) -> FloatArray:
    """The values dealt out by falling score, equal scores by id, no two of them equal."""
    order = sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))
    falling = np.sort(values.astype(np.float64))[::-1].copy()
    for place in range(1, len(falling)):
        falling[place] = min(falling[place], np.nextafter(falling[place - 1], -np.inf))
    dealt = np.empty_like(falling)
    dealt[order] = falling
    return dealt


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


def _source(chunk: Chunk, field: str) -> Any:
    if field not in chunk.metadata:
        raise InvalidInputError(
            f"chunk {chunk.id!r} has no {field!r} in its metadata: max_per_source needs it"
        )
    return chunk.metadata[field]
