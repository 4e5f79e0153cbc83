"""The store's schema: its version, the extension, and the tables of each collection.

The schema is made in one transaction under a lock: if two processes open a new database at once, one waits
for the other. A schema of a newer version is not changed.

The names of a collection's tables come from its number, so its own name may be anything. Further dense and
sparse vectors are columns beside the embedding: one row is one record, which is replaced as a whole, and a
filter reads the same row. Blobs have their own table, because they are large and rarely read.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from psycopg import errors, sql

from dartboard.errors import ConfigError, StoreError, StoreFormatError
from dartboard.stores.manifest import Manifest

OLDEST_VECTOR = (0, 8)
"""The first version of pgvector that continues a search when a filter leaves too few hits."""
LARGEST_DIMENSION = 16_000
"""pgvector's limit for a stored vector."""
SPARSE_DIMENSION = 1_000_000_000
"""pgvector's limit for the terms of a sparse vector; all columns use it, so that any two compare."""
_INLINE_BYTES = 5_000
"""Vectors up to this size stay in the row, so that a scan reads them directly; a page has 8 KB."""
_LONGEST_TEXT = 200_000
"""Characters that are indexed for text search: a tsvector holds 1 MB."""

VERSION = 1
_SETUP = """
    CREATE TABLE IF NOT EXISTS {schema}.migrations (
        version integer PRIMARY KEY,
        applied timestamptz NOT NULL DEFAULT now()
    );
    CREATE TABLE IF NOT EXISTS {schema}.collections (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        name text COLLATE "C" NOT NULL UNIQUE,
        manifest jsonb NOT NULL,
        configuration text NOT NULL,
        created timestamptz NOT NULL DEFAULT now()
    );
    INSERT INTO {schema}.migrations VALUES (1) ON CONFLICT DO NOTHING;
"""


def lock_key(*parts: object) -> int:
    """A 63-bit key for PostgreSQL's advisory locks, the same in every process."""
    text = "\x00".join(["dartboard", *map(str, parts)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def set_up(connection: Any, schema: str, *, read_only: bool) -> None:
    """Make the schema and its tables if they are missing; a schema of a newer version is refused."""
    found = _version(connection, schema)
    if found > VERSION:
        raise StoreFormatError(
            f"schema {schema!r} was made by a newer dartboard (version {found}, this one knows {VERSION}): "
            "upgrade dartboard, or choose another schema with ?schema="
        )
    if found == VERSION:
        return
    if read_only:
        raise StoreError(f"schema {schema!r} holds no dartboard collections: index something first")
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("set up", schema),))
        # "IF NOT EXISTS" would require the CREATE privilege even if the schema exists.
        if not connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone():
            _create_schema(connection, schema)
        connection.execute(sql.SQL(_SETUP).format(schema=sql.Identifier(schema)))


def find_vector(connection: Any, *, read_only: bool) -> str:
    """The schema of the extension ``vector``; the extension is created if missing and allowed."""
    (encoding,) = connection.execute("SHOW server_encoding").fetchone()
    if encoding != "UTF8":
        raise StoreError(f"the database stores text as {encoding}: create one with ENCODING 'UTF8'")
    query = (
        "SELECT nspname, extversion FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace "
        "WHERE extname = 'vector'"
    )
    found = connection.execute(query).fetchone()
    if found is None:
        if read_only:
            raise StoreError("the database lacks the extension vector: run CREATE EXTENSION vector in it")
        _install_vector(connection)
        found = connection.execute(query).fetchone()
    schema, version = found or ("public", "0")
    if tuple(map(int, version.split(".")[:2])) < OLDEST_VECTOR:
        raise StoreError(
            f"pgvector {version} is too old, 0.8 is needed: install it on the server, then "
            "run ALTER EXTENSION vector UPDATE"
        )
    return str(schema)


def _version(connection: Any, schema: str) -> int:
    """The version of the tables; 0 if there are none yet."""
    there = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename = 'migrations'", (schema,)
    ).fetchone()
    if there is None:
        return 0
    query = sql.SQL("SELECT coalesce(max(version), 0) FROM {}.migrations").format(sql.Identifier(schema))
    return int(connection.execute(query).fetchone()[0])


def _create_schema(connection: Any, schema: str) -> None:
    try:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
    except errors.InsufficientPrivilege:
        user, database = connection.info.user, connection.info.dbname
        raise StoreError(
            f"role {user!r} may not create schema {schema!r} in database {database!r}: have its owner run "
            f'CREATE SCHEMA "{schema}" AUTHORIZATION "{user}"'
        ) from None


def _install_vector(connection: Any) -> None:
    try:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key("extension"),))
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege:
        raise StoreError(
            f"role {connection.info.user!r} may not add the extension vector: have an administrator run "
            f"CREATE EXTENSION vector in database {connection.info.dbname!r}"
        ) from None
    except (errors.FeatureNotSupported, errors.UndefinedFile):
        raise StoreError(
            "the server has no pgvector: install it (package postgresql-NN-pgvector, or the image "
            "pgvector/pgvector), then open the store again"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Names of a collection's tables and columns.

    ``vectors`` and ``sparse`` are the columns of further dense and sparse vectors, by name. ``columns`` are
    all columns of a record's row with their types, except the generated one. Names of columns, indexes and
    tables come from numbers, so they need no quoting; the schema's name is the user's, and is quoted.
    """

    schema: str
    number: int
    manifest: Manifest
    vectors: dict[str, str] = field(init=False)
    sparse: dict[str, str] = field(init=False)
    columns: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        vectors = {name: f"v{at}" for at, name in enumerate(sorted(self.manifest.vectors))}
        sparse = {name: f"s{at}" for at, name in enumerate(sorted(self.manifest.sparse))}
        columns = {
            **{"id": "text", "text": "text", "metadata": "jsonb", "embedding": "vector"},
            **dict.fromkeys(vectors.values(), "vector"),
            **dict.fromkeys(sparse.values(), "sparsevec"),
        }
        for name, value in (("vectors", vectors), ("sparse", sparse), ("columns", columns)):
            object.__setattr__(self, name, value)

    def column(self, field: str | None) -> str:
        """The column of the embedding, or of a further vector."""
        return "embedding" if field is None else self.vectors[field]

    def plain(self, ending: str) -> str:
        """The name of a table or index without its schema."""
        return f"c{self.number}_{ending}"

    def named(self, ending: str) -> str:
        """The same with its schema, quoted."""
        return str(sql.Identifier(self.schema, self.plain(ending)).as_string(None))

    def statement(self, template: str, **parts: object) -> str:
        """A statement with ``{records}``, ``{blobs}`` and other parts filled in."""
        return template.format(records=self.named("records"), blobs=self.named("blobs"), **parts)

    def create(self, connection: Any, configuration: str) -> None:
        """Create the tables; ``configuration`` is the text search configuration."""
        columns = ", ".join(self._columns(configuration))
        connection.execute(
            self.statement(
                "CREATE TABLE {records} ({columns}) WITH (toast_tuple_target = 4080)", columns=columns
            )
        )
        for column in self._inline():
            connection.execute(
                self.statement("ALTER TABLE {records} ALTER {column} SET STORAGE PLAIN", column=column)
            )
        connection.execute(
            self.statement(
                'CREATE TABLE {blobs} (id text COLLATE "C" NOT NULL REFERENCES {records} ON DELETE CASCADE, '
                'name text COLLATE "C" NOT NULL, data bytea NOT NULL, PRIMARY KEY (id, name))'
            )
        )
        connection.execute(self.statement("ALTER TABLE {blobs} ALTER data SET STORAGE EXTERNAL"))
        self._add_inverted_index(connection, "metadata", "jsonb_path_ops")
        self._add_inverted_index(connection, "terms", "tsvector_ops")

    def change_configuration(self, connection: Any, configuration: str) -> None:
        """Analyse all texts again."""
        terms = _terms_column(configuration)
        connection.execute(
            self.statement("ALTER TABLE {records} DROP COLUMN terms, ADD COLUMN {terms}", terms=terms)
        )
        self._add_inverted_index(connection, "terms", "tsvector_ops")

    def drop(self, connection: Any) -> None:
        """Drop the tables."""
        connection.execute(self.statement("DROP TABLE IF EXISTS {blobs}, {records}"))

    def _columns(self, configuration: str) -> Iterator[str]:
        yield 'id text COLLATE "C" PRIMARY KEY'
        yield "text text NOT NULL"
        yield "metadata jsonb NOT NULL"
        for name in (None, *sorted(self.manifest.vectors)):
            dimension = self.manifest.vector_field(name).dimension
            if dimension > LARGEST_DIMENSION:
                raise ConfigError(
                    f"{name or 'embedding'} has {dimension} dimensions: pgvector keeps {LARGEST_DIMENSION}"
                )
            yield f"{self.column(name)} vector({dimension}){' NOT NULL' if name is None else ''}"
        for column in self.sparse.values():
            yield f"{column} sparsevec({SPARSE_DIMENSION})"
        yield _terms_column(configuration)

    def _add_inverted_index(self, connection: Any, column: str, operators: str) -> None:
        statement = "CREATE INDEX {name} ON {records} USING gin ({column} {operators})"
        connection.execute(
            self.statement(statement, name=self.plain(column), column=column, operators=operators)
        )

    def _inline(self) -> list[str]:
        """The vectors that stay in the row: all, or if they do not fit, the small ones."""
        kept: list[str] = []
        left = _INLINE_BYTES
        for name in (None, *sorted(self.manifest.vectors)):
            size = 4 * self.manifest.vector_field(name).dimension
            if size <= left:
                kept.append(self.column(name))
                left -= size
        return kept


def _terms_column(configuration: str) -> str:
    quoted = sql.Literal(configuration).as_string(None)
    return (
        f"terms tsvector GENERATED ALWAYS AS (to_tsvector({quoted}::regconfig, left(text, {_LONGEST_TEXT}))) "
        "STORED"
    )
