"""Where the vectors of documents come from: a model, a function, the documents themselves, or their store.

Whoever says that documents carry their vectors gets these or an error that names the first document
without a usable one. Nothing is embedded instead, and no document is left out. A store is asked by id; what
it does not have, its model embeds.
"""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import check_texts
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.document_vectors import Length, embed_documents, knows_any
from dartboard.integrations.models import UnknownModel, as_model, check_model
from dartboard.types import FloatArray, check_vector

_warned = False


_SHOWN = 40
_D = TypeVar("_D")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item:
    """A document, its place among those that were given, and what is known of it.

    ``text`` is what a model would embed, ``shown`` what a reader gets and ``compared`` what near-duplicates
    are found by, where these are not the same. ``vector`` and ``score`` are what the document itself carries,
    unchecked.
    """

    document: Any
    position: int
    own_id: str | None
    text: str | None
    metadata: Mapping[str, Any]
    shown: str | None = None
    compared: str | None = None
    vector: Any = None
    score: Any = None

    @property
    def id(self) -> str | int:
        """Its own id, or where it has none its position."""
        return self.position if self.own_id is None else self.own_id

    @property
    def label(self) -> str:
        """How an error names it."""
        if self.own_id is not None:
            return f"document {self.own_id!r}"
        text = " ".join((self.text or "").split())
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return f"document {self.position} ({shown!r})"


def check_documents(documents: Iterable[_D], kind: type[_D], example: str) -> list[_D]:
    """The documents as a list; an error where one is of another ``kind`` says how to make one."""
    if isinstance(documents, kind | str) or not isinstance(documents, Iterable):
        raise InvalidInputError(
            f"documents must be a list such as [{example}], got {type(documents).__name__}"
        )
    listed = list(documents)
    for place, document in enumerate(listed):
        if not isinstance(document, kind):
            raise InvalidInputError(
                f"document {place} must be a {kind.__name__}, got {type(document).__name__}: make one with "
                f"{example}"
            )
    return listed


@dataclass(frozen=True, slots=True, eq=False)
class StoredVectors:
    """The store that the documents are from: ``read`` gives the vectors that it has, by id."""

    name: str
    read: Callable[[list[str]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GatheredVectors:
    """Vectors of the questions, ``(m, d)``, and of ``items``, ``(n, d)``, where each came from, and by whom.

    ``lengths`` says how far each item was read, where that is known.
    """

    questions: FloatArray
    items: Sequence[Item]
    vectors: FloatArray
    sources: Sequence[str]
    model: EmbeddingModel
    lengths: Sequence[Length | None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorSource:
    """How vectors are come by.

    ``model`` embeds the query, and the documents too unless ``function`` makes their vectors from them, or
    they are ``carried``: text that says where, such as ``metadata field 'embedding'``, with ``carried_name``
    for its short form, or the ``store`` has them. ``model_knob`` is what the framework calls the model, for
    errors; ``advice`` says how not to embed
    where there is no store, for a warning.
    """

    model: Any = None
    function: Callable[[list[Any]], Any] | None = None
    carried: str | None = None
    carried_name: str = ""
    store: StoredVectors | None = None
    model_knob: str = "embeddings"
    advice: str = ""

    def __post_init__(self) -> None:
        check_model(self.model, self.model_knob)
        if self.function is not None and not callable(self.function):
            raise ConfigError(f"vectors must be a function of documents, got {type(self.function).__name__}")
        if inspect.iscoroutinefunction(self.function):
            raise ConfigError("vectors must be a plain function, not an async one: it runs in a thread")
        if self.function is not None and self.carried is not None:
            raise ConfigError(f"vectors come from a function or from {self.carried}: choose one")
        if self.store is not None and not self.embeds:
            raise ConfigError(f"vectors come from {self._where()} or from {self.store.name}: choose one")

    @property
    def embeds(self) -> bool:
        """Whether the model embeds the documents, or those that the store does not have."""
        return self.function is None and self.carried is None

    def require_model(self) -> None:
        """An error where the documents' vectors are ready-made and nobody can embed a query like them."""
        if not self.embeds and self.model is None:
            raise ConfigError(
                f"the documents' vectors come from {self._where()}: say which model made them, with "
                f"{self.model_knob}, so that the query is embedded alike"
            )

    def gather(
        self, query: str, items: Sequence[Item], query_vector: Any = None, also: Sequence[str] = ()
    ) -> GatheredVectors | None:
        """The vectors, checked; None where no document has any words to embed.

        ``query_vector`` stands in for embedding the query; further questions (``also``) are embedded.
        """
        stored = self._stored(items)
        if self.embeds:
            items = [item for item in items if item.position in stored or _has_words(item)]
            if not items:
                return None
        if query_vector is None or also:
            self.require_model()
        unknown = not self.embeds and self.model is None
        model = UnknownModel() if unknown else as_model(self.model)
        if self.embeds:
            vectors, sources, lengths = self._stored_or_embedded(model, items, stored)
        else:
            vectors, sources, lengths = self._ready(items), [self._source()] * len(items), [None] * len(items)
        if self.store is not None and np.size(query_vector) != vectors.shape[1]:
            query_vector = None  # some other model's: the store's own is at hand
        texts = list(also) if query_vector is not None else [query, *also]
        asked = [] if query_vector is None else [(query_vector, "as it was given")]
        asked += [(vector, f"by {model.name}") for vector in (model.encode_queries(texts) if texts else ())]
        questions = []
        for given, maker in asked:
            vector = check_vector(given, name="the query's vector")
            if vectors.shape[1] != vector.size:
                raise InvalidInputError(
                    f"the query's vector ({maker}) has {vector.size} dimensions where those of the documents "
                    f"({sources[0]}) have {vectors.shape[1]}: embed the query with the model that made theirs"
                )
            questions.append(vector)
        return GatheredVectors(
            questions=np.stack(questions),
            items=items,
            vectors=vectors,
            sources=sources,
            model=model,
            lengths=lengths,
        )

    def _stored(self, items: Sequence[Item]) -> dict[int, Any]:
        """Position → the vector that the document or its store has; nothing without a store."""
        if self.store is None:
            return {}
        found = {item.position: item.vector for item in items if item.vector is not None}
        asked = [item for item in items if item.position not in found and item.own_id is not None]
        ids = list(dict.fromkeys(str(item.own_id) for item in asked))
        known = self.store.read(ids) if ids else {}
        return found | {
            item.position: known[str(item.own_id)]
            for item in asked
            if known.get(str(item.own_id)) is not None
        }

    def _stored_or_embedded(
        self, model: EmbeddingModel, items: Sequence[Item], stored: Mapping[int, Any]
    ) -> tuple[FloatArray, list[str], list[Length | None]]:
        """Vectors, their sources and lengths, one an item; what is not stored is embedded."""
        others = [item for item in items if item.position not in stored]
        made, read = self._embedded(model, others, whole=not stored) if others else ((), None)
        embedded = {item.position: row for item, row in zip(others, made, strict=True)}
        lengths = {item.position: length for item, length in zip(others, read or (), strict=False)}
        where = self.store.name if self.store is not None else ""
        rows = [stored.get(item.position, embedded.get(item.position)) for item in items]
        vectors = _checked(rows, items, where) if stored else np.stack(rows)
        sources = [f"store:{where}" if item.position in stored else f"model:{model.name}" for item in items]
        return vectors, sources, [lengths.get(item.position) for item in items]

    def _embedded(
        self, model: EmbeddingModel, items: Sequence[Item], *, whole: bool
    ) -> tuple[FloatArray, list[Length] | None]:
        """One row a document, and how far it was read; equal texts are encoded once.

        Where nothing of the ``whole`` pool was known before, a warning says so, once in a process.
        """
        for item in items:
            try:
                check_texts([item.text or ""])
            except InvalidInputError as error:
                raise InvalidInputError(f"{item.label} cannot be embedded: {error}") from None
        texts = [item.text or "" for item in items]
        rows = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        if whole and not knows_any(model, list(rows)):
            advice = self.advice
            if self.store is not None:
                advice = (
                    f"The {self.store.name} returned no vectors for their ids: if it has them, read them "
                    "with vectors=FUNCTION."
                )
            _warn_once(f"{len(items)} documents were embedded with {model.name} to pick from them. {advice}")
        vectors, lengths = embed_documents(model, list(rows))
        places = [rows[text] for text in texts]
        return vectors[places], None if lengths is None else [lengths[place] for place in places]

    def _source(self) -> str:
        return f"field:{self.carried_name}" if self.function is None else f"function:{_name(self.function)}"

    def _where(self) -> str:
        if self.function is not None:
            return f"the function {_name(self.function)}"
        return self.carried or ""

    def _ready(self, items: Sequence[Item]) -> FloatArray:
        if self.function is None:
            return _checked([item.vector for item in items], items, self._where())
        made = self.function([item.document for item in items])
        try:
            rows = list(made)
        except TypeError:
            raise InvalidInputError(
                f"{self._where()} gave {type(made).__name__}: it must give one vector a document"
            ) from None
        if len(rows) != len(items):
            raise InvalidInputError(
                f"{self._where()} gave {len(rows)} vectors for {len(items)} documents: need one each"
            )
        return _checked(rows, items, self._where())


def _has_words(item: Item) -> bool:
    """Whether there is something to embed; what is no text at all is an error."""
    if item.text is None:
        raise InvalidInputError(
            f"{item.label} has no text to embed: leave it out, or say where its vector comes from"
        )
    return bool(item.text.strip())


def _warn_once(message: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"{message} Their vectors stay in memory, so each document is embedded once. (This warning "
            "comes once.)",
            stacklevel=2,
        )


def _checked(rows: Sequence[Any], items: Sequence[Item], where: str) -> FloatArray:
    """The rows as a matrix; the first that is missing, unusable or of another length is named."""
    vectors: list[FloatArray] = []
    for row, item in zip(rows, items, strict=True):
        if row is None:
            raise InvalidInputError(
                f"{item.label} has no vector: all are to come from {where}. Fetch documents with their "
                "vectors, or let a model embed them"
            )
        vectors.append(check_vector(row, name=f"the vector of {item.label} (from {where})", one_row=False))
        if vectors[-1].size != vectors[0].size:
            raise InvalidInputError(
                f"the vector of {item.label} (from {where}) has {vectors[-1].size} dimensions where that of "
                f"{items[0].label} has {vectors[0].size}: all must come from one model"
            )
    return np.stack(vectors)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__qualname__)
