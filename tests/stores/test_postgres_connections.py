"""Reaching the server: addresses, what is said when it does not answer, coming back after it went away."""

import re
import sys
import threading

import numpy as np
import pytest

from dartboard.errors import (
    CollectionError,
    ConfigError,
    MissingExtraError,
    StoreError,
    StoreUnavailableError,
    install_command,
)
from dartboard.stores import open_store
from dartboard.stores.manifest import Manifest
from dartboard.stores.postgres import PostgresStore
from dartboard.stores.postgres import connection as connection_module
from dartboard.stores.postgres.connection import parse_address
from dartboard.stores.records import Record
from tests.stores.postgres_server import address, admin, fresh, server
from tests.waiting import wait_until

PLAIN = Manifest(model="m", dimension=2)


def record(id="a"):
    return Record(id, "some text", np.ones(2))


# Addresses


def test_own_parameters_are_taken_out():
    found = parse_address(
        "postgresql://me:se%40cret@db.example:5433/docs?schema=papers&pool_size=3&sslmode=require&timeout=2.5"
    )
    assert (found.schema, found.pool_size, found.timeout) == ("papers", 3, 2.5)
    assert "schema" not in found.conninfo and "sslmode=require" in found.conninfo
    assert "se@cret" in found.conninfo and found.secret == "se@cret"
    assert found.url.startswith("postgresql://me@db.example:5433/docs?schema=papers")
    assert "cret" not in found.url + repr(found)
    assert parse_address("postgresql://h/d?schema=a", schema="b", pool_size=2).schema == "b"
    assert "cret" not in parse_address("postgres://h/d?password=secret&user=me").url


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("postgresql://u:p@ss@host/d", "%40"),
        ("postgresql://u:p/ss@host/d", "%40"),
        ("postgresql://host/d?color=red", "libpq's own parameters"),
        ("postgresql://host/d?pool_size=many", "pool_size must be a number"),
        ("postgresql://host/d?pool_size=0", "pool_size must be >= 1"),
        ("postgresql://host/d?timeout=0", "timeout must be"),
        ("postgresql://host/d?schema=", "schema must be"),
        ("postgresql://host/d?schema=pg_mine", "reserves names"),
    ],
)
def test_bad_addresses(url, complaint):
    with pytest.raises(ConfigError, match=complaint) as caught:
        PostgresStore(url)
    assert "ss@host" not in str(caught.value)


def test_psycopg_is_an_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("dartboard.stores.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("postgres"))):
        open_store("postgresql://host/d")


# What is said when something is wrong


def said(error, url):
    with pytest.raises(error) as caught:
        PostgresStore(url)
    return str(caught.value)


def test_nobody_listens():
    message = said(StoreUnavailableError, "postgresql://me:hush@127.0.0.1:1/docs")
    assert "refused" in message and "check" in message and "hush" not in message
    assert "resolve" in said(StoreUnavailableError, "postgresql://me@no-such-host.invalid/docs")


def test_missing_database_and_role():
    assert "nothing_here" in said(StoreUnavailableError, address(database="nothing_here"))
    assert "does not exist" in said(StoreUnavailableError, address(user="nobody_here"))


def refuses(user):
    try:
        PostgresStore(address(user=user)).close()
    except StoreUnavailableError:
        return True
    except StoreError:
        return False
    return False


def test_wrong_password():
    hba = server().pgdata / "pg_hba.conf"
    before = hba.read_text()
    admin("DROP ROLE IF EXISTS guarded", "CREATE ROLE guarded LOGIN PASSWORD 'right-one'")
    try:
        hba.write_text("local all guarded scram-sha-256\n" + before)
        admin("SELECT pg_reload_conf()")
        wait_until(lambda: refuses("guarded"))
        message = said(StoreUnavailableError, address(user="guarded", password="wrong-one"))
        assert "password" in message and "wrong-one" not in message
        assert "PGPASSWORD" in said(StoreUnavailableError, address(user="guarded"))
    finally:
        hba.write_text(before)
        admin("SELECT pg_reload_conf()", "DROP ROLE guarded")


@pytest.fixture
def guest():
    """A role that may only connect to a database of its own, without the extension; its name."""
    admin(
        "DROP DATABASE IF EXISTS guests WITH (FORCE)",
        "DROP ROLE IF EXISTS guest",
        "CREATE ROLE guest LOGIN",
        "CREATE DATABASE guests",
        "REVOKE ALL ON DATABASE guests FROM PUBLIC",
        "GRANT CONNECT ON DATABASE guests TO guest",
    )
    yield "guest"
    admin("DROP DATABASE guests WITH (FORCE)", "DROP ROLE guest")


def test_few_rights(guest):
    url = address(user=guest, database="guests")
    assert "administrator run CREATE EXTENSION vector in database 'guests'" in said(StoreError, url)
    with pytest.raises(StoreError, match="lacks the extension"):
        PostgresStore(url, read_only=True)
    admin("CREATE SCHEMA tools", "CREATE EXTENSION vector SCHEMA tools", database="guests")
    admin("GRANT USAGE ON SCHEMA tools TO guest", database="guests")
    assert 'CREATE SCHEMA "dartboard" AUTHORIZATION "guest"' in said(StoreError, url)
    with pytest.raises(StoreError, match="no dartboard collections"):
        PostgresStore(url, read_only=True)
    # A schema of its own is all that it needs: no temporary tables, nothing in public.
    admin("CREATE SCHEMA dartboard AUTHORIZATION guest", database="guests")
    with PostgresStore(url) as store:
        collection = store.create(
            "c", Manifest(model="m", dimension=2, settings={"lexical": {"stem": False}})
        )
        collection.upsert([record(f"{at:03d}") for at in range(200)])
        collection.build_index()
        assert len(collection.search_vector(np.ones(2), 3)) == 3
        assert collection.search_text("text", 1)[0].id == "000"
        assert store.why_not_writable() == ""
    admin("CREATE ROLE reader LOGIN", database="guests")
    try:
        admin("GRANT CONNECT ON DATABASE guests TO reader", database="guests")
        assert "role needs" in said(StoreError, address(user="reader", database="guests"))
        admin(
            "GRANT USAGE ON SCHEMA dartboard, tools TO reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA dartboard TO reader",
            database="guests",
        )
        with PostgresStore(address(user="reader", database="guests"), read_only=True) as store:
            assert store.why_not_writable() == "the role may not make tables in schema dartboard"
            assert store.open("c").count() == 200 and store.open("c").search_text("text", 3)
            with pytest.raises(StoreError, match="read-only"):
                store.open("c").upsert([record()])
        store = PostgresStore(address(user="reader", database="guests"))
        with store, pytest.raises(StoreError, match="role needs"):
            store.open("c").prepare()
            store.open("c").upsert([record()])
    finally:
        admin("DROP OWNED BY reader", "DROP ROLE reader", database="guests")


def test_old_or_missing_extension(guest):
    admin("ALTER DATABASE guests SET extension_control_path = '/nowhere'")
    assert "server has no pgvector" in said(StoreError, address(database="guests"))
    admin("ALTER DATABASE guests RESET extension_control_path")
    admin("CREATE EXTENSION vector", "UPDATE pg_extension SET extversion = '0.7.4'", database="guests")
    assert "pgvector 0.7.4 is too old" in said(StoreError, address(database="guests"))


def test_another_encoding():
    admin("DROP DATABASE IF EXISTS latin")
    admin("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LOCALE 'C'")
    assert "LATIN1" in said(StoreError, address(database="latin"))
    admin("DROP DATABASE latin")


# Coming and going


def cut(application):
    query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = '{}'"
    assert admin(query.format(application))[0][0] > 0


def test_back_after_the_connections_were_cut():
    with PostgresStore(fresh(pool_size=2, application_name="cut")) as store:
        collection = store.create("c", PLAIN)
        collection.upsert([record()])
        cut("cut")
        assert collection.search_vector(np.ones(2), 1)[0].id == "a"
        assert collection.count() == 1


def test_cut_while_writing():
    with PostgresStore(fresh(application_name="cut2")) as store:
        collection = store.create("c", PLAIN)

        def rows():
            yield record("a")
            cut("cut2")
            yield record("b")

        lost = pytest.raises(StoreUnavailableError, match="check")
        with lost, store._connections.writing() as connection:
            for row in rows():
                connection.execute("INSERT INTO c1_records VALUES (%s, 'x', '{}', '[1,1]')", (row.id,))
        assert collection.count() == 0


def test_back_after_a_restart(monkeypatch):
    monkeypatch.setattr(connection_module, "_PATIENCE", 0.2)
    running = server()
    with PostgresStore(fresh()) as store:
        collection = store.create("c", PLAIN)
        collection.upsert([record()])
        running.stop()
        try:
            with pytest.raises(StoreUnavailableError, match="check"):
                collection.count()
        finally:
            running.start()
        assert collection.get(["a"])[0].text == "some text"
        collection.upsert([record("b")])
        assert collection.count() == 2


def test_the_pool_is_bounded(monkeypatch):
    monkeypatch.setattr(connection_module, "_PATIENCE", 0.05)
    with PostgresStore(fresh(pool_size=2, timeout=1, application_name="few")) as store:  # timing: runs out
        collection = store.create("c", PLAIN)
        full = pytest.raises(StoreUnavailableError, match="pool_size=")
        with store._connections.reading(), store._connections.reading(), full:
            collection.count()
    with PostgresStore(fresh(pool_size=2, timeout=600, application_name="few")) as store:
        collection = store.create("c", PLAIN)
        assert collection.count() == 0
        done = []
        threads = [threading.Thread(target=lambda: done.append(collection.count())) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert done == [0] * 12
        (open_now,) = admin("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'few'")[0]
        assert open_now <= 2


def test_long_statements_are_given_up():
    with PostgresStore(fresh(timeout=1)) as store:  # timing: has to run out
        slow = pytest.raises(StoreError, match="timeout=")
        with slow, store._connections.reading() as connection:
            connection.execute("SELECT pg_sleep(600)")
        with store._connections.writing() as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_opened_by_url_and_closed():
    url = fresh()
    with open_store(url) as store:
        assert isinstance(store, PostgresStore) and store.url in url
        collection = store.create("c", PLAIN)
        store.drop("c")
        with pytest.raises(CollectionError, match="dropped"):
            collection.count()
        kept = store.create("c", PLAIN)
        with pytest.raises(CollectionError, match="dropped"):
            collection.upsert([record()])
        assert kept.count() == 0
    with pytest.raises(StoreError, match="closed"):
        store.collections()


def test_read_only():
    url = fresh()
    with PostgresStore(url) as store:
        store.create("c", PLAIN).upsert([record()])
    with open_store(url, read_only=True) as store:
        collection = store.open("c")
        assert collection.count() == 1 and collection.search_vector(np.ones(2), 1)
        for write in (
            lambda: store.create("d", PLAIN),
            lambda: store.drop("c"),
            lambda: collection.delete(["a"]),
            lambda: collection.configure({}),
        ):
            with pytest.raises(StoreError, match="read-only"):
                write()
        with pytest.raises(StoreError, match="read-only"), store._connections.reading() as connection:
            connection.execute("DELETE FROM collections")
