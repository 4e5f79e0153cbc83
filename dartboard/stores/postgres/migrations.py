"""The schema and its version: numbered steps, applied in one transaction under a lock.

Two processes that open a new database at once: one waits for the other. A database of a newer version is
left alone.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

from dartboard.errors import StoreError, StoreFormatError
from dartboard.stores.postgres.address import Address

OLDEST_VECTOR = (0, 8)
"""pgvector's first version that goes on searching when a filter leaves too few hits."""

STEPS: tuple[str, ...] = (
    """
    CREATE TABLE {schema}.collections (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,
        manifest jsonb NOT NULL,
        configuration text NOT NULL,
        created timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE {schema}.indexes (
        collection integer NOT NULL REFERENCES {schema}.collections ON DELETE CASCADE,
        field text NOT NULL,
        m integer NOT NULL,
        ef_construction integer NOT NULL,
        ef_search integer,
        recall double precision NOT NULL,
        records bigint NOT NULL,
        built timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (collection, field)
    );
    COMMENT ON COLUMN {schema}.indexes.ef_search IS 'NULL: the index misses too much, searches are exact';
    """,
)


def lock_key(*parts: object) -> int:
    """A number for PostgreSQL's advisory locks, of 63 bits, the same in every process."""
    text = "\x00".join(["dartboard", *map(str, parts)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def stored_version(connection: Any, schema: str) -> int:
    """The number of steps applied; 0 where there is no schema yet."""
    from psycopg import sql

    there = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'migrations'", (schema,)
    ).fetchone()
    if there is None:
        return 0
    query = sql.SQL("SELECT coalesce(max(version), 0) FROM {}.migrations").format(sql.Identifier(schema))
    return int(connection.execute(query).fetchone()[0])


def check_version(connection: Any, schema: str) -> None:
    """For readers: the version must be just the one that this dartboard knows."""
    found = stored_version(connection, schema)
    _refuse_newer(found, len(STEPS), schema)
    if found == 0:
        raise StoreError(f"there is nothing of dartboard in schema {schema!r}: index something first")
    if found < len(STEPS):
        raise StoreFormatError(
            f"schema {schema!r} has version {found}, this dartboard reads {len(STEPS)}: open it once to write"
        )


def migrate(connection: Any, schema: str, steps: Sequence[str] = STEPS) -> None:
    """Bring the schema up to date, all steps or none."""
    from psycopg import sql

    found = stored_version(connection, schema)
    _refuse_newer(found, len(steps), schema)
    if found == len(steps):
        return
    name = sql.Identifier(schema)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("migrate", schema),))
        _make_schema(connection, schema)
        connection.execute(
            sql.SQL(
                "CREATE TABLE IF NOT EXISTS {}.migrations "
                "(version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
            ).format(name)
        )
        found = stored_version(connection, schema)
        _refuse_newer(found, len(steps), schema)
        for number, step in enumerate(steps[found:], start=found + 1):
            connection.execute(sql.SQL(step).format(schema=name))
            connection.execute(sql.SQL("INSERT INTO {}.migrations VALUES (%s)").format(name), (number,))


def find_vector(connection: Any, address: Address, *, read_only: bool) -> str:
    """The schema where the extension ``vector`` lives; it is made where it is missing and that is allowed."""
    (encoding,) = connection.execute("SHOW server_encoding").fetchone()
    if encoding != "UTF8":
        raise StoreError(f"the database keeps text as {encoding}: make one with ENCODING 'UTF8'")
    found = _installed(connection)
    if found is None:
        if read_only:
            raise StoreError("the database lacks the extension vector: run CREATE EXTENSION vector in it")
        _install(connection)
        found = _installed(connection)
    schema, version = found if found is not None else ("public", "0")
    if tuple(map(int, version.split(".")[:2])) < OLDEST_VECTOR:
        raise StoreError(
            f"pgvector {version} is too old, 0.8 is needed: install it on the server, then "
            "run ALTER EXTENSION vector UPDATE"
        )
    return schema


def _refuse_newer(found: int, known: int, schema: str) -> None:
    if found > known:
        raise StoreFormatError(
            f"schema {schema!r} was made by a newer dartboard (version {found}, this one knows {known}): "
            "upgrade dartboard, or choose another schema with ?schema="
        )


def _make_schema(connection: Any, schema: str) -> None:
    """``IF NOT EXISTS`` would ask for the right to create even where the schema is there."""
    from psycopg import errors, sql

    if connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone():
        return
    try:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    except errors.InsufficientPrivilege:
        user, database = connection.info.user, connection.info.dbname
        raise StoreError(
            f"role {user!r} may not create schema {schema!r} in database {database!r}: have its owner run "
            f'CREATE SCHEMA "{schema}" AUTHORIZATION "{user}"'
        ) from None


def _installed(connection: Any) -> tuple[str, str] | None:
    row = connection.execute(
        "SELECT nspname, extversion FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
        "WHERE extname = 'vector'"
    ).fetchone()
    return None if row is None else (row[0], row[1])


def _install(connection: Any) -> None:
    from psycopg import errors

    database = connection.info.dbname
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("extension"),))
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege:
        raise StoreError(
            f"role {connection.info.user!r} may not add the extension vector: have an administrator run "
            f"CREATE EXTENSION vector in database {database!r}"
        ) from None
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise StoreError(
            "the server has no pgvector: install it (package postgresql-NN-pgvector, or the image "
            "pgvector/pgvector), then open the store again"
        ) from None
