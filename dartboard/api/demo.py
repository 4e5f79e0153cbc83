"""The small corpus of the package as a collection: something to ask before anything is indexed."""

import logging

from dartboard.datasets import demo
from dartboard.embeddings import CachedModel, EmbeddingModel
from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.vectors import Vectors
from dartboard.engine import Engine
from dartboard.errors import ConfigError
from dartboard.stores import Record
from dartboard.stores.memory import MemoryStore
from dartboard.stores.records import with_fingerprints

logger = logging.getLogger(__name__)

DEMO = "demo"


def demo_engine(
    model: EmbeddingModel, retriever: str | None = None, pair_scorer: PairScorer | str | None = None
) -> Engine:
    """An engine over the demo corpus, in memory."""
    engine = Engine(MemoryStore(), collection=DEMO, model=model, retriever=retriever, pair_scorer=pair_scorer)
    collection = engine.create()
    records = [
        Record(chunk.id, chunk.text, chunk.embedding, chunk.metadata)
        for chunk in demo.chunks(_encoded(model, demo.texts()))
    ]
    collection.upsert(with_fingerprints(engine.retriever.index(records)))
    collection.prepare()
    return engine


def _encoded(model: EmbeddingModel, texts: list[str]) -> Vectors:
    """Through the cache on disk where there is one: a second start takes no time."""
    try:
        with CachedModel(model) as cached:
            return cached.encode_documents(texts)
    except ConfigError as error:
        logger.warning("%s; the demo is encoded at every start", error)
        return model.encode_documents(texts)
