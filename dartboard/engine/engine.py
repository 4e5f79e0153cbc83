"""Open, index, search: the one thing that every door calls.

An engine is a collection, the model that made its vectors, and a retriever. What the collection was made
with is written in its manifest; opening it again needs no more than its URL.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np

from dartboard.calibration import Calibration
from dartboard.config import DartboardConfig
from dartboard.core import DartboardRetriever
from dartboard.embeddings.base import EmbeddingModel, PairScorer
from dartboard.embeddings.by_name import model_by_name, pair_scorer_by_name
from dartboard.engine import trust
from dartboard.errors import (
    CollectionError,
    ConfigError,
    InvalidInputError,
    StoreFormatError,
    UntrustedModelError,
)
from dartboard.relevance import SimilarityLevels, assess, known_levels, measure_levels
from dartboard.retrievers.base import Fields, Retriever, cosines
from dartboard.retrievers.candidates import Candidates, Ranked
from dartboard.retrievers.query import Query
from dartboard.retrievers.registry import retriever_by_name
from dartboard.search_options import TRIAGE, SearchKeywords, SearchOptions, as_filter
from dartboard.selection.select import method_of
from dartboard.stores import (
    DEFAULT_COLLECTION,
    Collection,
    CollectionStats,
    Filter,
    Manifest,
    Store,
    open_store,
)
from dartboard.stores.checks import check_fields
from dartboard.stores.urls import is_there, missing_index
from dartboard.types import Explanation, FloatArray, RetrievalResult, check_vector

if TYPE_CHECKING:
    from dartboard.context import Context, Format, Order
    from dartboard.duplicates.corpus import Listener
    from dartboard.duplicates.report import DuplicateReport

DEFAULT_RETRIEVER = "hybrid"


class Engine:
    """A collection with the model and the retriever that belong to it.

    A name that the collection stores chooses only what ships with dartboard, unless the user has confirmed it
    (:mod:`dartboard.engine.trust`).

    Args:
        store: where the collection is, or will be; or its URL, and it is opened when it is first needed.
        collection: its name.
        model: the embedding model or its name; by default the one that the collection was made with, and for
            a new one dartboard's own.
        retriever: who finds candidates, or its name; by default as for the model.
        pair_scorer: what a ``reranker`` scores with, or its name (``late-interaction``,
            ``cross-encoder:PATH``); loaded when a search first asks for it.
        trust_model: confirms stored names for this engine: True for whatever is stored, or the names that
            may be used.

    Example:
        >>> with Engine.open("handbook.dartboard") as engine:
        ...     result = engine.search("How are keys rotated?", k=5)
    """

    def __init__(
        self,
        store: Store | str,
        *,
        collection: str = DEFAULT_COLLECTION,
        model: EmbeddingModel | str | None = None,
        retriever: Retriever | str | None = None,
        pair_scorer: PairScorer | str | None = None,
        trust_model: bool | Sequence[str] = False,
    ) -> None:
        self._store = store
        self.name = collection
        self._model = model
        self._retriever = retriever
        self._pair_scorer = pair_scorer
        self._trust = trust_model
        self._known_fields: set[str] = set()

    @classmethod
    def open(cls, url: str, *, read_only: bool = False, **options: Any) -> Self:
        """The engine over the store at ``url``; ``options`` as in the constructor.

        A file that is not there is made by the first write: until then a search says that there is none.
        """
        there = read_only or is_there(url)
        return cls(open_store(url, read_only=read_only) if there else url, **options)

    @property
    def store(self) -> Store:
        """The store, opened now at the latest; a file that is not there is made."""
        if isinstance(self._store, str):
            self._store = open_store(self._store)
        return self._store

    @property
    def collection(self) -> Collection:
        """The collection, or an error that says how to make it."""
        if isinstance(self._store, str) and not is_there(self._store):
            raise CollectionError(missing_index(self._store), field="store")
        try:
            return self.store.open(self.name)
        except CollectionError as error:
            raise CollectionError(f"{error}. Index something first: dartboard index PATH") from error

    @property
    def exists(self) -> bool:
        """Whether the collection has been made."""
        if isinstance(self._store, str) and not is_there(self._store):
            return False
        return self.name in self.store.collections()

    @property
    def model_wanted(self) -> EmbeddingModel | str:
        """The model that was given, or its name; else the name of the one the collection was made with.

        Whoever loads it by that name sends the API key along: a stored name has to allow that.
        """
        if self._model is not None:
            return self._model
        name, send_key = self._stored_model()
        if not send_key:
            raise UntrustedModelError(
                f"collection {self.name!r} names the model {trust.shown(name)!r}, and only the index names "
                "its host, which gets no API key: name the model yourself, by --model or model=… in Python"
            )
        return name

    @cached_property
    def model(self) -> EmbeddingModel:
        """The embedding model, loaded when it is first needed, and checked against the collection."""
        manifest = self.collection.manifest if self.exists else None
        if self._model is None:
            name, send_key = self._stored_model()
            model = model_by_name(name, send_key=send_key)
        else:
            model = model_by_name(self._model) if isinstance(self._model, str) else self._model
        if manifest is not None:
            self._check_model(model, manifest)
        return model

    def _check_model(self, model: EmbeddingModel, manifest: Manifest) -> None:
        """Others may have made the collection anew since it was opened."""
        if model.fingerprint != manifest.model:
            raise StoreFormatError(
                f"collection {self.name!r} was made with {manifest.model_name or manifest.model!r}, not with "
                f"{model.name!r}: open it with that model, or index into another collection"
            )

    @cached_property
    def retriever(self) -> Retriever:
        """Who finds candidates; it checks that the collection carries what it needs."""
        wanted = self._retriever
        if wanted is None and self.exists:
            wanted = self.collection.manifest.settings.get("retriever")
            if isinstance(wanted, str):
                trust.confirm(self.store, "retriever", wanted, collection=self.name, trust=self._trust)
        if isinstance(wanted, Retriever):
            return wanted
        model = self.model
        try:
            return retriever_by_name(wanted or DEFAULT_RETRIEVER, model=model)
        except ConfigError as error:
            if self._retriever is not None:
                raise
            raise ConfigError(
                f"collection {self.name!r} was made with the retriever {wanted!r}, which its name does not "
                f"make again: pass retriever=… ({error})"
            ) from error

    def create(self, *, settings: dict[str, Any] | None = None) -> Collection:
        """The collection, new and empty, for this model and retriever."""
        fields = self.retriever.fields()
        manifest = Manifest(
            model=self.model.fingerprint,
            model_name=self.model.name,
            dimension=self.model.embedding_dim,
            vectors=dict(fields.vectors),
            sparse=fields.sparse,
            settings={
                "model": self._model if isinstance(self._model, str) else "default",
                "retriever": self._retriever if isinstance(self._retriever, str) else _spelt(self.retriever),
                "retrievers": self.retriever.index_settings(),
                "fields": _names(fields),
                **self._measured_levels(),
                **(settings or {}),
            },
        )
        made = self.store.create(self.name, manifest)
        for setting, name in trust.stored_names(manifest.settings).items():
            trust.remember(trust.place_of(self.store), setting, name, with_key=True)
        return made

    def confirm_names(self) -> None:
        """Names that were given and that the collection stores are confirmed for its store from now on."""
        stored = trust.stored_names(self.collection.manifest.settings)
        for setting, given in (("model", self._model), ("retriever", self._retriever)):
            if isinstance(given, str) and given == stored.get(setting):
                trust.remember(trust.place_of(self.store), setting, given, with_key=True)

    def check_fields(self) -> None:
        """What this retriever fills in is what the collection's records carry, or nothing may be added."""
        carried = self.collection.manifest.settings.get("fields")
        filled = _names(self.retriever.fields())
        if carried is not None and dict(carried) != filled:
            before = self.collection.manifest.settings.get("retriever")
            raise ConfigError(
                f"collection {self.name!r} was indexed for {before!r}, and {self.retriever.name!r} keeps "
                "other fields: leave the retriever out, or index into another collection"
            )

    def search(
        self,
        query: str,
        options: SearchOptions | None = None,
        *,
        query_vector: FloatArray | None = None,
        **changes: Unpack[SearchKeywords],
    ) -> RetrievalResult:
        """The passages that together say most about the query.

        Args:
            query: what to ask.
            options: what is asked for; by default five passages out of the retriever's first hundred.
            query_vector: the query as :attr:`model` encodes it, where the caller has it already; ``(m, d)``
                for the query and the questions in ``also``.
            changes: single options: ``k=8``, ``where="year >= 2020"`` (see :class:`SearchOptions`).

        Returns:
            The picks in order and why. A collection without a match gives an empty result.
            ``result.metadata["relevance"]`` says whether anything relevant was found: see
            :class:`dartboard.relevance.Relevance`.

        Raises:
            InvalidInputError: a blank query, an unknown chunk id, or a filter on a field that no chunk has.
        """
        options = SearchOptions.of(options, changes)
        self.selector(options)  # what has to be loaded is loaded before time is taken
        started = time.perf_counter()
        with self.first_stage(query, options, query_vector) as (_, found, vectors):
            scores = self.ranking_scores(found, options) if len(found) else None
            result = self.choose(query, vectors, found, options, scores=scores)
        return self.described(result, found, started)

    @contextmanager
    def first_stage(
        self, query: str, options: SearchOptions, query_vector: FloatArray | None = None
    ) -> Iterator[tuple[Collection, Candidates, FloatArray]]:
        """A read snapshot, the candidates that :meth:`find` finds in it, and the questions' vectors."""
        questions = [Query(text) for text in (query, *options.also)]
        if query_vector is not None:
            given, dimension = np.atleast_2d(query_vector), self.model.embedding_dim
            if len(given) != len(questions):
                raise InvalidInputError(
                    f"query_vector has {len(given)} rows for {len(questions)} questions: give one for the "
                    "query and one for each in also",
                    field="query_vector",
                )
            for question, vector in zip(questions, given, strict=True):
                checked = check_vector(vector, name="query_vector", dim=dimension)
                question.set_vector(self.model, checked)
        where = self.condition(options.where)
        for question in questions:
            self.retriever.query_vector(question)  # encoded before a transaction begins
        with self.collection.read_snapshot() as view:
            self._check_model(self.model, view.manifest)
            yield (view, *self.find(view, questions, options, where))

    def choose(
        self, query: str, vectors: FloatArray, found: Candidates, options: SearchOptions, **more: Any
    ) -> RetrievalResult:
        """The second stage of :meth:`search`; ``more`` as in :meth:`DartboardRetriever.choose`."""
        if len(found):
            return self.selector(options).choose(query, vectors, found, options, **more)
        relevance = assess(vectors, found.vectors, self.similarity_levels)
        nothing = Explanation(candidates=0, relevance=relevance, seconds={}, options=options)
        return RetrievalResult.explained(query, [], nothing)

    def context(
        self,
        question: str,
        options: SearchOptions | None = None,
        *,
        expand: bool = True,
        order: "Order" = "gain",
        format: "Format" = "markdown",
        query_vector: FloatArray | None = None,
        **changes: Unpack[SearchKeywords],
    ) -> "Context":
        """The text that a model reads: passages that together say most, merged, within a token budget.

        Args:
            question: what to ask.
            options: as in :meth:`search`; ``token_budget``, by default 2,000, is what the whole text may have
                in tokens of ``tokenizer``, by default the embedding model's.
            expand: whether chunks before and after a pick may be added where they add most per token.
            order: ``gain`` (what adds most comes first), ``source`` (passages of one document together, in
                its order), or ``ends`` (the best first and last, where models read most carefully).
            format: ``markdown``, ``xml`` or ``json``.
            query_vector: as in :meth:`search`.
            changes: single options: ``token_budget=800``, ``tokenizer="gpt-4o"``.

        Returns:
            The text, its tokens, and the passages with their chunks; empty where nothing matches.

        Raises:
            ConfigError: no passage fits into the budget, or an option is outside its range.
            InvalidInputError: as in :meth:`search`.
        """
        from dartboard.context import build_context

        return build_context(
            self,
            question,
            options,
            expand=expand,
            order=order,
            format=format,
            query_vector=query_vector,
            **changes,
        )

    def find(
        self, view: Collection, questions: Sequence[Query], options: SearchOptions, where: Filter | None
    ) -> tuple[Candidates, FloatArray]:
        """The first stage of :meth:`search`: what the retriever finds for each question.

        Args:
            view: a read snapshot of the collection.
            questions: the query, then those in ``options.also``.
            options: candidates come without the excluded, and with those required or seen, which do not count
                towards ``triage_k``.
            where: the filter of ``options``, checked.

        Returns:
            The candidates, and the questions' vectors, ``(m, d)``.
        """
        seen = set(options.seen_ids)
        exclude = set(options.exclude) - seen
        parts, vectors = [], []
        for question in questions:
            wanted, more = options.candidates_each, len(exclude | seen)
            found = self.retriever.find(view, question, wanted + more, where=where)
            if more:
                # What was seen keeps its place: it is a probable target, and covered.
                kept = [at for at, id in enumerate(found.ids) if id not in exclude]
                new = [at for at in kept if found.ids[at] not in seen][:wanted]
                last_place = new[-1] if new else len(found)
                found = found.take([at for at in kept if at <= last_place])
            parts.append(found)
            vectors.append(question.vector(self.model) if found.query_vector is None else found.query_vector)
        found, asked = parts[0] if len(parts) == 1 else Candidates.union(parts), np.stack(vectors)
        nothing = not len(found)
        for name, ids in (("must_include", options.must_include), ("seen", options.seen_ids)):
            missing = [id for id in dict.fromkeys(ids) if id not in found.ids]
            if not missing:
                continue
            last = found.scores[-1] if len(found) else 0.0  # selection needs a place in the order for each
            required = Candidates.fetched(view, Ranked(missing, np.full(len(missing), last)))
            if unknown := set(missing) - set(required.ids):
                raise InvalidInputError(f"no chunk {min(unknown)!r} in the collection: check {name}")
            if name == "must_include" or not nothing:
                found = found.followed_by(required)
        # Selection has this limit too; here it may leave nothing, which is an empty result and no error.
        if options.min_similarity is not None and not options.must_include and len(found):
            near = np.max([cosines(one, found.vectors) for one in asked], axis=0) >= options.min_similarity
            near |= np.isin(found.ids, options.seen_ids)
            found = found.take(np.flatnonzero(near).tolist())
        return found, asked

    def ranking_scores(self, found: Candidates, options: SearchOptions) -> FloatArray | None:
        """The retriever's scores whose order counts in the selection; None for that of the distances.

        A dense retriever's order is that of the distances, but for the rounding that top_k would show. Of
        several questions, ``(m, n)``: what a question did not find has its lowest score.
        """
        if getattr(self.retriever, "ranks_by_distance", False) and method_of(options.method).name != "top_k":
            return None
        return found.scores if found.by_question is None else found.by_question

    def candidates(self, query: str, k: int = TRIAGE, *, where: Filter | str | None = None) -> Candidates:
        """What the retriever alone finds, best first."""
        condition = self.condition(where)
        return self.retriever.retrieve(self.collection, query, k, where=condition)

    def condition(self, where: Filter | str | None) -> Filter | None:
        """A filter from what callers give, once the collection has the fields that it compares."""
        condition = as_filter(where)
        if condition is not None:
            check_fields(self.collection, condition, self._known_fields)
        return condition

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | str | None = None) -> int:
        """Remove chunks by id or by filter; returns how many went."""
        condition = self.condition(where)
        return self.collection.delete(ids, where=condition)

    def duplicates(
        self,
        *,
        queries: Sequence[str] | None = None,
        similarity: float | None = None,
        vectors: bool = True,
        fields: Sequence[str] = (),
        groups: int = 20,
        listen: "Listener | None" = None,
    ) -> "DuplicateReport":
        """How redundant the collection is: exact copies, near-duplicates, and what says nearly the same.

        Args:
            queries: typical questions; by default 100 titles of the collection.
            similarity: the smallest cosine of chunks that say nearly the same; by default from σ, as in
                selection: each covers the other at least by half.
            vectors: False compares texts only, and does not search.
            fields: metadata fields by which the duplicates are explained, beside ``source`` and ``version``.
            groups: how many of the largest groups come with texts.
            listen: told the step, how much of it is done, and of how much.

        Returns:
            The report; ``report.answer()`` says what Dartboard changes. Nothing is deleted:
            :func:`dartboard.duplicates.plan_deletion` says what could be.

        Raises:
            InvalidInputError: no chunks, no words in them, a blank query, or a field that no chunk has.
            ConfigError: ``similarity`` is no cosine.

        Example:
            >>> print(engine.duplicates().answer())
        """
        from dartboard.duplicates.corpus import silent
        from dartboard.duplicates.report import find_duplicates

        return find_duplicates(
            self,
            queries=queries,
            similarity=similarity,
            vectors=vectors,
            fields=fields,
            groups=groups,
            listen=listen or silent,
        )

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file that any store restores."""
        self.collection.snapshot(path)
        settings = self.collection.manifest.settings
        trust.carry(trust.place_of(self.store), trust.place_of(path), settings)

    def restore(self, path: str | Path, name: str | None = None) -> Collection:
        """A new collection from a snapshot; what was confirmed for the one holds for the other."""
        made = self.store.restore(path, name)
        trust.carry(trust.place_of(path), trust.place_of(self.store), made.manifest.settings)
        return made

    def stats(self) -> CollectionStats:
        """Size and state of the collection."""
        return self.collection.stats()

    @cached_property
    def calibration(self) -> Calibration | None:
        """What calibration stored with the collection, or None."""
        stored = self.collection.manifest.settings.get("calibration")
        return Calibration.from_json(stored) if stored else None

    def calibrate(self, found: Calibration) -> None:
        """Store a calibration with the collection: from now on it is what ``sigma="auto"`` means."""
        found.check(self.model.fingerprint, "scaled_cosine")
        collection = self.collection
        collection.configure({"calibration": found.to_json()})
        for cached in ("calibration", "_selector"):
            self.__dict__.pop(cached, None)

    @cached_property
    def similarity_levels(self) -> SimilarityLevels | None:
        """By what a result says whether anything relevant was found: known of the model, or measured when
        the collection was created; None where neither.
        """
        stored = self.collection.manifest.settings.get("similarity_levels")
        return known_levels(self.model) or (SimilarityLevels(**stored) if stored else None)

    def close(self) -> None:
        """Close the store."""
        if not isinstance(self._store, str):
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _stored_model(self) -> tuple[str, bool]:
        """The model's name in the collection, once it may be used, and whether an API key may go along."""
        if not self.exists:
            return "default", True
        name = str(self.collection.manifest.settings.get("model", "default"))
        return name, trust.confirm(self.store, "model", name, collection=self.name, trust=self._trust)

    def _measured_levels(self) -> dict[str, dict[str, float]]:
        """The model's similarity levels for the manifest, unless they are known without."""
        levels = None if known_levels(self.model) else measure_levels(self.model)
        return {"similarity_levels": levels._asdict()} if levels else {}

    def selector(self, options: SearchOptions) -> DartboardRetriever:
        """Who selects: with the pair scorer where the options ask for one, which is loaded now."""
        self.retriever  # noqa: B018 - it is loaded now as well
        return self._selector if options.reranker == "cosine" else self._new_selector(self._scorer())

    @cached_property
    def _selector(self) -> DartboardRetriever:
        return self._new_selector(None)

    def _new_selector(self, scorer: PairScorer | None) -> DartboardRetriever:
        return DartboardRetriever(
            DartboardConfig(reranker_type="cosine"),
            self.model,
            cross_encoder=scorer,
            calibration=self.calibration,
            similarity_levels=self.similarity_levels,
        )

    def _scorer(self) -> PairScorer:
        """The pair scorer that was given, else late interaction where the model has token vectors."""
        if self._pair_scorer is None and not hasattr(self.model, "token_vectors"):
            raise ConfigError(
                f"{self.model.name} has no token vectors: pass a pair_scorer, or choose reranker='cosine'"
            )
        if self._pair_scorer is None or isinstance(self._pair_scorer, str):
            self._pair_scorer = pair_scorer_by_name(self._pair_scorer or "late-interaction", self.model)
        return self._pair_scorer

    def described(self, result: RetrievalResult, found: Candidates, started: float) -> RetrievalResult:
        """The result with what the retriever says of the picks, and where the time went."""
        picked = [chunk.id for chunk in result.chunks]
        spent = dict(result.metadata["seconds"])
        fetch = found.seconds.get("fetch", 0.0) + spent.pop("read", 0.0)
        return result.with_explanation(
            retriever=self.retriever.name,
            collection=self.name,
            shares=[{name: share._asdict() for name, share in found.shares(id).items()} for id in picked],
            retriever_score=[found.score(id) for id in picked],
            seconds={**found.seconds, "fetch": fetch, **spent, "total": time.perf_counter() - started},
        )


def _spelt(retriever: Retriever) -> str:
    """The name that opens the retriever again, where it has one."""
    return str(getattr(retriever, "spelt", retriever.name))


def _names(fields: Fields) -> dict[str, list[str]]:
    return {
        "vectors": sorted(fields.vectors),
        "sparse": sorted(fields.sparse),
        "blobs": sorted(fields.blobs),
    }
