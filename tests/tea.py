"""Ten sentences, three of them near-copies, and an engine over them: what tests of searching share."""

from dartboard.engine import Engine
from dartboard.stores import Record
from dartboard.stores.memory import MemoryStore
from tests.models import WordBag

TEXTS = {
    "a": "tea grows on hills",
    "b": "tea grows on steep hills",
    "c": "tea grows on green hills",
    "d": "tea is dried and rolled",
    "e": "coffee grows on hills too",
    "f": "coffee is roasted dark",
    "g": "black tea is oxidised",
    "h": "green tea is steamed",
    "i": "water boils at sea level",
    "j": "cups are made of clay",
}
QUERY = "how does tea grow on hills"


def filled(store=None, texts=TEXTS, **options):
    """An engine over the texts, in memory unless a store is given; the near-copies are of one source."""
    engine = Engine(store or MemoryStore(), **{"model": WordBag(), "retriever": "hybrid"} | options)
    vectors = engine.model.encode_documents(list(texts.values()))
    records = [
        Record(id, text, vector, {"source": f"{id in 'abc'}.md", "number": number, "tags": ["tea", id]})
        for number, ((id, text), vector) in enumerate(zip(texts.items(), vectors, strict=True))
    ]
    engine.create().upsert(engine.retriever.index(records))
    return engine
