"""A store of each kind, empty, for tests that ask the same of all of them."""

from dartboard.stores import open_store
from dartboard.stores.memory import MemoryStore
from tests.stores import postgres_server

KINDS = ["memory", "embedded", "postgres", "milvus"]


def store_of(kind, folder):
    if kind == "postgres":
        return open_store(postgres_server.fresh())
    if kind == "milvus":
        return open_store(f"milvus://{folder / 'lite.db'}")
    return MemoryStore() if kind == "memory" else open_store(str(folder / "x.dartboard"))
