"""What Milvus alone can get wrong: addresses, names, limits, paging, ties, crashes, refusals."""

import multiprocessing
import re
import socket
import sys
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.engine import Engine
from dartboard.errors import (
    CollectionError,
    ConfigError,
    MissingExtraError,
    StoreError,
    StoreFormatError,
    StoreUnavailableError,
    UntrustedModelError,
    install_command,
)
from dartboard.lexical.analysis import Analyzer
from dartboard.stores import Manifest, Record, SparseVector, VectorField, open_store, parse_filter
from dartboard.stores.memory import MemoryStore
from dartboard.stores.milvus import MilvusStore, connection, queries
from dartboard.stores.milvus.connection import parse_address
from dartboard.stores.milvus.queries import best_hits
from dartboard.stores.milvus.rows import Lexemes
from dartboard.stores.milvus.schema import (
    MANIFEST_PROPERTY,
    choose_layout,
    collection_name,
    field_name,
    index_kinds,
    is_ours,
    readable_name,
)
from dartboard.testing import (
    BEYOND,
    MANIFEST,
    PLAIN,
    own_word,
    record,
    same_hits,
    same_record,
    sample_queries,
    sample_records,
)
from dartboard.types import Hit
from tests.hostile_index import QUESTION, SECRET, attacking, elsewhere
from tests.stores.milvus_server import MilvusServer, free_port, milvus_server, milvus_url

__all__ = ["milvus_server", "milvus_url"]


@pytest.fixture
def store(milvus_url: str) -> Iterator[MilvusStore]:
    with MilvusStore(milvus_url) as store:
        yield store


# Addresses


@pytest.mark.parametrize(
    ("url", "uri", "database", "token", "shown"),
    [
        ("milvus://host", "http://host:19530", "", "", "milvus://host:19530"),
        ("milvus://host:1/db", "http://host:1", "db", "", "milvus://host:1/db"),
        ("milvuss://host/", "https://host:19530", "", "", "milvuss://host:19530"),
        ("milvus://me:s%40crt@host", "http://host:19530", "", "me:s@crt", "milvus://host:19530"),
        ("milvus://tkn@host/db", "http://host:19530", "db", "tkn", "milvus://host:19530/db"),
        (
            "milvus://host?token=tkn&index=flat",
            "http://host:19530",
            "",
            "tkn",
            "milvus://host:19530?index=flat",
        ),
        ("milvus://[::1]:7", "http://[::1]:7", "", "", "milvus://[::1]:7"),
    ],
)
def test_addresses(url: str, uri: str, database: str, token: str, shown: str) -> None:
    address = parse_address(url)
    assert (address.uri, address.database, address.token, address.shown) == (uri, database, token, shown)
    assert "tkn" not in repr(address) and "crt" not in repr(address)


def test_token_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARTBOARD_MILVUS_TOKEN", "from-outside")
    assert parse_address("milvus://host").token == "from-outside"
    assert parse_address("milvus://mine@host").token == "mine"
    assert parse_address("milvus:///a/b.db").token == ""


def test_local_addresses() -> None:
    assert parse_address("milvus:///a/b%20c.db").path == "/a/b c.db"
    assert parse_address("milvus:///./b.db").path == "./b.db"
    assert parse_address("milvus:///a/b.db?index=hnsw").shown == "milvus:///a/b.db?index=hnsw"


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("milvus://", "needs a host"),
        ("milvus:///", "needs a host"),
        ("milvuss:///a.db", "needs a host"),
        ("milvus://host:port", "cannot read"),
        ("milvus://host/a/b", "one name without"),
        ("milvus://host?index=best", "auto, flat, hnsw, autoindex"),
        ("milvus://host?tokn=x", "unknown option 'tokn'"),
    ],
)
def test_bad_addresses(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        parse_address(url)


# Names


@given(st.text(min_size=1, max_size=200))
def test_names_come_back(name: str) -> None:
    stored = collection_name(name)
    assert len(stored) <= 255 and stored.isascii() and stored.replace("_", "").isalnum() and is_ours(stored)
    assert readable_name(stored) in (name, None)


def test_names_stay_apart() -> None:
    names = ["a", "A", "a_", "a b", "_", "_20", "ä", "日本" * 60, "日本" * 61]
    assert len({collection_name(name) for name in names}) == len(names)
    assert len({field_name("vector", name) for name in names}) == len(names)
    assert collection_name("default") == "dartboard_default"


def test_long_names_and_foreign_collections(store: MilvusStore) -> None:
    long = "長い名前" * 40
    store.create(long, PLAIN)
    schema = store._connection._client.create_schema()
    from pymilvus import DataType

    schema.add_field("id", DataType.INT64, is_primary=True)
    schema.add_field("v", DataType.FLOAT_VECTOR, dim=2)
    for foreign in ("somebody_elses", "dartboard_stray"):
        store._connection.call("create_collection", foreign, schema=schema)
    try:
        assert store.collections() == sorted([long, "stray"])
        assert store.open(long).name == long
        with pytest.raises(StoreFormatError, match="not made by dartboard"):
            store.open("stray")
        with pytest.raises(CollectionError, match="no collection"):
            store.open("somebody_elses")
    finally:
        store._connection.call("drop_collection", "somebody_elses")


def test_damaged_and_newer_manifests(store: MilvusStore) -> None:
    made = store.create("a", PLAIN)
    for wrong, complaint in (("{", "properties were changed"), ('{"format_version": 99}', "newer dartboard")):
        store._connection.call(
            "alter_collection_properties", made._stored_name, properties={MANIFEST_PROPERTY: wrong}
        )
        with pytest.raises(StoreFormatError, match=complaint):
            store.open("a")


# Records


def test_large_bytes_and_bare_records(store: MilvusStore, tmp_path: Path) -> None:
    kept = store.create("a", MANIFEST)
    large = np.random.default_rng(0).bytes(200_000)
    several = [
        record(
            "large",
            blobs={"codes": large, "": b"", "ünï": b"\x00"},
            sparse={"splade": SparseVector.of([], [])},
        ),
        record("bare", text="?!"),
        record("vector", vectors={"code": np.ones(8)}),
    ]
    kept.upsert(several)
    found = {each.id: each for batch in kept.iterate() for each in batch}
    assert all(same_record(found[each.id], each) for each in several)
    assert kept.get(["large"], blobs=["codes"])[0].blobs == {"codes": large}
    assert [hit.id for hit in kept.search_vector(np.eye(8)[0], 9, field="code")] == ["vector"]


def test_large_upserts_go_in_several_requests(store: MilvusStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "REQUEST_ROWS", 40)
    kept, records = store.create("a", MANIFEST), sample_records(90)
    calls: list[int] = []
    whole = store._connection.call

    def counted(method: str, name: str = "", **given: Any) -> Any:
        if method == "upsert":
            calls.append(len(given["data"]))
            if len(calls) == 3:
                raise StoreUnavailableError("gone")
        return whole(method, name, **given)

    monkeypatch.setattr(store._connection, "call", counted)
    with pytest.raises(StoreUnavailableError, match="80 of 90"):
        kept.upsert(records)
    assert kept.count() == 80
    kept.upsert(records)
    assert kept.count() == 90 and calls == [40, 40, 10, 40, 40, 10]


def test_pages(store: MilvusStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "_ID_PAGE", 16)
    monkeypatch.setattr(queries, "REQUEST_ROWS", 5)
    kept, records = store.create("a", MANIFEST), sample_records(100)
    kept.upsert(records)
    batches = list(kept.iterate(batch_size=30))
    assert [len(batch) for batch in batches] == [30, 30, 30, 10]
    assert [each.id for batch in batches for each in batch] == [each.id for each in records]
    asked = [each.id for each in reversed(records)]
    assert [each.id for each in kept.get([*asked, asked[0]])] == [*asked, asked[0]]
    assert kept.delete(asked[:41]) == 41
    assert kept.delete(where=parse_filter("year exists")) == 59
    assert kept.count() == 0


def test_settings_of_texts_are_fixed(store: MilvusStore) -> None:
    lexical = {"language": "german", "stem": False, "k1": 2.0}
    kept = store.create("a", Manifest(model="m", dimension=2, settings={"lexical": lexical}))
    kept.upsert([Record("a", "Die Häuser am See", np.ones(2)), Record("b", "nichts", np.ones(2))])
    assert [hit.id for hit in kept.search_text("HÄUSER", 5)] == ["a"]
    assert kept.search_text("haus", 5) == [] and kept.search_text("die am", 5) == []
    kept.configure({"lexical": {**lexical, "b": 0.75}, "more": 1})
    for wrong in (None, {"language": "german"}, {**lexical, "k1": 1.0}):
        with pytest.raises(StoreError, match="cannot change"):
            kept.configure({"lexical": wrong})
    with pytest.raises(ConfigError, match="unknown lexical setting"):
        kept.configure({"lexical": {"stemming": True}})
    assert store.open("a").manifest.settings == {"lexical": {**lexical, "b": 0.75}, "more": 1}


def test_lexemes_are_words_for_any_tokenizer() -> None:
    lexemes = Lexemes(Analyzer())
    line = lexemes.of_text("The queues of self.get_id and 日本語, naïve_word")
    assert all(word.isascii() and word.isalnum() for word in line.split())
    assert "queue" in line.split() and "the" not in line.split()
    assert lexemes.of_query("the of") == "" and lexemes.of_text("?!") != ""
    assert set(lexemes.of_query("日本").split()) <= set(line.split())


# Searches


def test_equals_are_cut_by_id(store: MilvusStore) -> None:
    kept = store.create("a", MANIFEST)
    same = SparseVector.of([3], [1.0])
    kept.upsert(
        [record(f"{number:03d}", text="equal", sparse={"splade": same}) for number in reversed(range(150))]
    )
    first = [f"{number:03d}" for number in range(3)]
    for exact in (False, True):
        assert [hit.id for hit in kept.search_vector(np.eye(24)[0], 3, exact=exact)] == first
    assert [hit.id for hit in kept.search_sparse(same, 3, field="splade")] == first
    assert [hit.id for hit in kept.search_text("equal", 3)] == first


def test_the_server_is_asked_again_among_equals() -> None:
    everything = [Hit(f"{number:05d}", 1.0 if number < 20_000 else 0.5) for number in reversed(range(20_000))]
    asked = []

    def search(limit: int) -> list[Hit]:
        asked.append(limit)
        return everything[:limit]

    assert len(best_hits(search, 10)) == 16_384 and asked[:3] == [18, 36, 72]
    assert len(best_hits(lambda limit: [Hit("a", 1.0), Hit("b", 0.5)], 1)) == 1
    assert len(best_hits(lambda limit: [Hit("a", 1.0), Hit("b", 0.999999)], 1, slack=1e-5)) == 2


@pytest.mark.parametrize("field", [None, "code", "pooled"])
def test_exact_on_an_approximate_index(milvus_url: str, field: str | None) -> None:
    with MilvusStore(f"{milvus_url}?index=hnsw") as store:
        kept, truth = store.create("a", MANIFEST), MemoryStore().create("a", MANIFEST)
        for each in (kept, truth):
            each.upsert(sample_records(250))
        assert kept.stats().details["index"] == "HNSW"
        size = {"code": 8, "pooled": 12}.get(field or "", 24)
        for query in np.random.default_rng(3).standard_normal((5, size)):
            for where in (None, parse_filter("lang = 'en'")):
                for exact in (True, False):
                    found = kept.search_vector(query, 20, where=where, field=field, exact=exact)
                    expected = truth.search_vector(query, 20 + BEYOND, where=where, field=field)
                    assert same_hits(found, expected, k=20)


def test_recall_of_an_approximate_index(milvus_url: str) -> None:
    """HNSW, which a collection on a server gets, on more records than its search width."""
    records = sample_records(4000, fields=False)
    with MilvusStore(f"{milvus_url}?index=hnsw") as store:
        kept, truth = store.create("recall", PLAIN), MemoryStore().create("recall", PLAIN)
        for start in range(0, len(records), 1000):
            kept.upsert(records[start : start + 1000])
        truth.upsert(records)
        assert kept.stats().details["index"] == "HNSW"
        found = 0
        for query in sample_queries(20, seed=3):
            wanted = {hit.id for hit in truth.search_vector(query, 100)}
            found += len(wanted & {hit.id for hit in kept.search_vector(query, 100)})
        store.drop("recall")
    assert found / 2000 >= 0.99


def test_more_hits_than_milvus_gives(store: MilvusStore) -> None:
    kept = store.create("a", PLAIN)
    kept.upsert(sample_records(30, fields=False))
    assert len(kept.search_vector(sample_queries(1)[0], 20_000)) == 30
    assert len(kept.search_text("broker queue message consumer", 20_000)) > 5


def test_layouts() -> None:
    lite = choose_layout("a", is_lite=True, index="auto")
    server = choose_layout("a", is_lite=False, index="auto")
    assert (lite.terms, lite.index) == ("text", "FLAT") and (server.terms, server.index) == ("array", "HNSW")
    assert choose_layout("a", is_lite=True, index="autoindex").index == "AUTOINDEX"
    manifest = Manifest(
        model="m", dimension=2, vectors={"v": VectorField(dimension=3, metric="dot")}, sparse=("s",)
    )
    kinds = index_kinds(manifest, server)
    assert kinds["vector_v"]["metric_type"] == "IP" and kinds["embedding"]["metric_type"] == "COSINE"
    assert kinds["terms"] == {"index_type": "INVERTED"} and kinds["bm25"]["params"]["bm25_k1"] == 1.2
    assert set(index_kinds(manifest, lite)) == {"embedding", "vector_v", "bm25", "sparse_s"}


def test_writers_side_by_side(store: MilvusStore) -> None:
    store.create("a", PLAIN)
    records = sample_records(240, fields=False)
    with futures.ThreadPoolExecutor(4) as pool:
        done = [
            pool.submit(store.open("a").upsert, records[start : start + 20]) for start in range(0, 240, 20)
        ]
    assert not any(each.exception() for each in done)
    assert store.open("a").count() == 240


# Crashes


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    server = MilvusServer(tmp_path)
    server.start()
    try:
        store = MilvusStore(server.url)
        kept, records = store.create("a", MANIFEST), sample_records(450)
        for start in range(0, 100, 10):
            kept.upsert(records[start : start + 10])
        server.kill()
        with pytest.raises(StoreUnavailableError, match="Milvus at"):
            kept.count()
        server.start()
        assert kept.count() == 100
        kept.upsert(records[100:400])
        assert kept.search_vector(records[399].embedding, 1)[0].id == records[399].id
        kept.upsert(records[400:])
        kept.delete([records[0].id])
        kept.configure({"after": "the flush"})
        server.kill()
        server.start()
        again = MilvusStore(server.url).open("a")
        assert again.manifest.settings["after"] == "the flush" and again.count() == 449
        found = [each for batch in again.iterate() for each in batch]
        assert all(same_record(*pair) for pair in zip(found, records[1:], strict=True))
        assert again.search_text(own_word(449), 1)[0].id == records[449].id
        store.close()
    finally:
        server.stop()


def test_an_interrupted_create_is_finished_when_opened(
    store: MilvusStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(store, "_make_ready", lambda *given: None)
        store.create("a", MANIFEST)
    kept = store.open("a")
    kept.upsert(sample_records(20))
    assert kept.search_text(own_word(3), 1)[0].id == "chunk/00003"


def test_a_create_that_fails_leaves_nothing(store: MilvusStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise StoreError("no index")

    monkeypatch.setattr(store, "_make_ready", refuse)
    with pytest.raises(StoreError, match="no index"):
        store.create("a", PLAIN)
    assert store.collections() == []


def test_a_restore_that_fails_leaves_nothing(
    store: MilvusStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = MemoryStore().create("a", PLAIN)
    elsewhere.upsert([record("a"), record("b")])
    elsewhere.snapshot(tmp_path / "a.snapshot")
    whole = (tmp_path / "a.snapshot").read_bytes()
    (tmp_path / "a.snapshot").write_bytes(whole[:-9])
    with pytest.raises(StoreFormatError, match="damaged"):
        store.restore(tmp_path / "a.snapshot")
    assert store.collections() == []


# Refusals


def test_read_only(store: MilvusStore, milvus_url: str, tmp_path: Path) -> None:
    store.create("a", PLAIN).upsert([record("x")])
    with open_store(milvus_url, read_only=True) as reader:
        kept = reader.open("a")
        assert kept.count() == 1 and kept.get(["x"]) and kept.search_text("text", 1)
        kept.snapshot(tmp_path / "a")
        for write in (
            lambda: kept.upsert([record("y")]),
            lambda: kept.delete(["x"]),
            lambda: kept.configure({}),
            lambda: reader.create("b", PLAIN),
            lambda: reader.drop("a"),
            lambda: reader.restore(tmp_path / "a", "b"),
        ):
            with pytest.raises(StoreError, match="read-only"):
                write()
    assert store.open("a").count() == 1


def test_a_closed_store_says_so(milvus_url: str) -> None:
    store = MilvusStore(milvus_url)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.collections()


def test_databases(store: MilvusStore, milvus_url: str) -> None:
    with pytest.raises(StoreUnavailableError, match="nowhere"):
        MilvusStore(f"{milvus_url}/nowhere")
    store._connection.call("create_database", db_name="other")
    try:
        with MilvusStore(f"{milvus_url}/other") as other:
            other.create("a", PLAIN)
            assert other.collections() == ["a"] and store.collections() == []
            other.drop("a")
    finally:
        store._connection.call("drop_database", db_name="other")


def test_nobody_there() -> None:
    url = f"milvus://me:hidden@127.0.0.1:{free_port()}"
    with pytest.raises(StoreUnavailableError, match="host") as caught:
        MilvusStore(url)
    assert "hidden" not in str(caught.value)


def test_somebody_else_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.5)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(StoreUnavailableError, match="check host"):
            MilvusStore(f"milvus://127.0.0.1:{silent.getsockname()[1]}")


class _Doorkeeper(grpc.ServerInterceptor):
    """Lets in who brings the token."""

    def __init__(self, token: str) -> None:
        import base64

        self._expected = base64.b64encode(token.encode()).decode()

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        if dict(details.invocation_metadata).get("authorization") == self._expected:
            return continuation(details)

        def refuse(request: Any, context: Any) -> None:
            given = dict(details.invocation_metadata).get("authorization")
            context.abort(grpc.StatusCode.UNAUTHENTICATED, f"auth check failure: {given!r} secret-token")

        return grpc.unary_unary_rpc_method_handler(refuse)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """Milvus Lite's service behind a door, since it has no users of its own."""
    from milvus_lite.adapter.grpc.servicer import MilvusServicer
    from milvus_lite.db import MilvusLite
    from pymilvus.grpc_gen import milvus_pb2_grpc

    database = MilvusLite(str(tmp_path / "guarded"))
    server = grpc.server(futures.ThreadPoolExecutor(2), interceptors=[_Doorkeeper("right-token")])
    milvus_pb2_grpc.add_MilvusServiceServicer_to_server(MilvusServicer(database), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield f"127.0.0.1:{port}"
    server.stop(grace=0).wait()
    database.close()


def test_tokens(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for url in (f"milvus://right-token@{guarded}", f"milvus://{guarded}?token=right-token"):
        with MilvusStore(url) as store:
            assert store.collections() == [] and "right" not in store.url
    for url in (f"milvus://secret-token@{guarded}", f"milvus://{guarded}"):
        with pytest.raises(StoreUnavailableError, match="token") as caught:
            MilvusStore(url)
        assert "DARTBOARD_MILVUS_TOKEN" in str(caught.value)
        assert "secret-token" not in str(caught.value)
    monkeypatch.setenv("DARTBOARD_MILVUS_TOKEN", "right-token")
    MilvusStore(f"milvus://{guarded}").close()


def test_missing_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "milvus_lite", None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("milvus"))):
        MilvusStore(f"milvus://{tmp_path}/a.db")
    for name in [name for name in sys.modules if name.startswith("dartboard.stores.milvus")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtraError, match=re.escape(f"pymilvus: {install_command('milvus')}")):
        open_store("milvus://127.0.0.1")


# Milvus Lite in this process


def _hold(path: str, ready: Any, done: Any) -> None:
    with MilvusStore(f"milvus://{path}"):
        ready.set()
        done.wait(60)


def test_lite_in_this_process(tmp_path: Path) -> None:
    url = f"milvus://{tmp_path}/lite.db"
    with open_store(url) as first, open_store(url) as second:
        assert first.url == url
        kept = first.create("a", MANIFEST)
        kept.upsert(sample_records(30))
        assert second.open("a").count() == 30
    with open_store(url, read_only=True) as again:
        assert again.open("a").search_text(own_word(7), 1)[0].id == "chunk/00007"


def test_lite_is_one_process_at_a_time(tmp_path: Path) -> None:
    path = str(tmp_path / "lite.db")
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(path, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(StoreUnavailableError, match="one process"):
            MilvusStore(f"milvus://{path}")
    finally:
        done.set()
        other.join(60)
    MilvusStore(f"milvus://{path}").close()


def test_lite_paths_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file.db").write_text("not a folder")
    for path in (tmp_path / "file.db", tmp_path / "no" / "folder.db"):
        with pytest.raises(StoreUnavailableError, match="folder"):
            MilvusStore(f"milvus://{path}")
    with pytest.raises(StoreError, match="no Milvus Lite store"):
        MilvusStore(f"milvus://{tmp_path}/new.db", read_only=True)
    with pytest.raises(ConfigError, match="db"):
        MilvusStore(f"milvus://{tmp_path}/new")


def test_a_model_that_only_the_server_names_gets_nothing(milvus_url, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "map.md").write_text("The treasure is buried under the old oak.")
    with attacking() as attacker:
        with elsewhere(tmp_path):
            attacker.fill(milvus_url, tmp_path / "docs")
        with (
            Engine.open(milvus_url, read_only=True) as engine,
            pytest.raises(UntrustedModelError, match="came from the index"),
        ):
            engine.search(QUESTION)
        assert attacker.requests == []
