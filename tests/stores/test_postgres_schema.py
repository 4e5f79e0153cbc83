"""The schema: steps in order, once, by one process at a time; and a database that others use too."""

import subprocess
import sys
import textwrap

import numpy as np
import psycopg
import pytest

from dartboard.errors import ConfigError, StoreError, StoreFormatError
from dartboard.stores.manifest import Manifest, VectorField
from dartboard.stores.postgres import PostgresStore
from dartboard.stores.postgres.connection import parse_address
from dartboard.stores.records import Record
from tests.stores.postgres_server import admin, fresh

PLAIN = Manifest(model="m", dimension=3)


@pytest.fixture
def url():
    return fresh()


@pytest.fixture
def connection(url):
    with psycopg.connect(parse_address(url).conninfo, autocommit=True) as connection:
        yield connection


def schema_of(url):
    return parse_address(url).schema


def test_a_newer_schema_is_left_alone(url, connection):
    schema = schema_of(url)
    PostgresStore(url).close()
    connection.execute(f"INSERT INTO {schema}.migrations VALUES (99)")
    for read_only in (False, True):
        with pytest.raises(StoreFormatError, match="newer dartboard"):
            PostgresStore(url, read_only=read_only)


def test_readers_make_nothing(url, connection):
    schema = schema_of(url)
    with pytest.raises(StoreError, match="no dartboard collections"):
        PostgresStore(url, read_only=True)
    assert not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone()


def test_many_processes_open_at_once(url):
    code = textwrap.dedent(
        """
        import sys
        from dartboard.stores.postgres import PostgresStore
        sys.stdin.readline()
        with PostgresStore(sys.argv[1]) as store:
            print(store.collections())
        """
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in started:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (0, "[]\n"), err


def test_other_tables_are_not_touched(url):
    schema = schema_of(url)
    admin(
        "CREATE TABLE IF NOT EXISTS public.collections (mine text)",
        "DELETE FROM public.collections",
        "INSERT INTO public.collections VALUES ('kept')",
        f'CREATE SCHEMA "{schema}"',
        f'CREATE TABLE "{schema}".also_mine (a int)',
    )
    with PostgresStore(url) as store:
        store.create("collections", PLAIN).upsert([Record("a", "text", np.ones(3))])
        store.create("also_mine", PLAIN)
        assert store.open("collections").count() == 1
        for name in store.collections():
            store.drop(name)
    assert admin("SELECT mine FROM public.collections") == [("kept",)]
    left = {name for (name,) in admin(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")}
    assert left == {"also_mine", "collections", "migrations"}
    admin("DROP TABLE public.collections")


def test_odd_names(url):
    names = ['drop table "x"; --', "日本 🙂", "x" * 200, "C1_records", "c1_records"]
    with PostgresStore(url, schema='odd "schema; --') as store:
        for name in names:
            store.create(name, PLAIN).upsert([Record(name, "text", np.ones(3))])
        assert store.collections() == sorted(names)
        assert [store.open(name).get([name])[0].id for name in names] == names
        for name in names:
            store.drop(name)
    admin('DROP SCHEMA "odd ""schema; --" CASCADE')


@pytest.mark.parametrize(
    ("manifest", "complaint"),
    [
        ({"dimension": 16_001}, "pgvector keeps 16000"),
        ({"dimension": 3, "vectors": {"wide": VectorField(dimension=20_000)}}, "wide has 20000"),
        ({"dimension": 3, "settings": {"hnsw": {"m": 1}}}, "m must be a number 2 to 100"),
        ({"dimension": 3, "settings": {"hnsw": {"m": 50}}}, "at least 2 m = 100"),
        ({"dimension": 3, "settings": {"hnsw": {"width": 1}}}, "must be an object"),
        ({"dimension": 3, "settings": {"hnsw": 7}}, "must be an object"),
        ({"dimension": 3, "settings": {"lexical": {"language": "klingon"}}}, "no text search in 'klingon'"),
    ],
)
def test_manifests_that_cannot_be(url, manifest, complaint):
    with PostgresStore(url) as store:
        with pytest.raises(ConfigError, match=complaint):
            store.create("c", Manifest(model="m", **manifest))
        assert store.collections() == []


@pytest.mark.parametrize("dimension", [1, 1250, 1999, 5000, 16_000])
def test_vectors_of_any_length_come_back(url, dimension):
    manifest = Manifest(model="m", dimension=dimension, vectors={"more": VectorField(dimension=700)})
    chance = np.random.default_rng(0)
    records = [
        Record(f"{at}", "word " * 3000, chance.standard_normal(dimension), vectors={"more": np.ones(700)})
        for at in range(3)
    ]
    with PostgresStore(url) as store:
        collection = store.create("c", manifest)
        collection.upsert(records)
        for record in records:
            (found,) = collection.get([record.id])
            assert np.array_equal(found.embedding, record.embedding)
            assert collection.search_vector(record.embedding, 1)[0].score == pytest.approx(1, abs=1e-5)
        collection.build_index()
        assert collection.search_vector(records[1].embedding, 3)
