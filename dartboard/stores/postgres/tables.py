"""The tables of one collection, under names made from its number, so that its own name may be anything.

Further vectors and sparse vectors are columns beside the embedding: one row is one record, replaced as a
whole, and a filter stands on the row that it judges. Bytes have a table of their own, since they are large
and seldom asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dartboard.errors import ConfigError
from dartboard.stores.manifest import Manifest, VectorField

LARGEST_DIMENSION = 16_000
"""pgvector's limit for a stored vector."""
SPARSE_DIMENSION = 1_000_000_000
"""pgvector's limit for the terms of a sparse vector; all columns have it, so that any two compare."""
_INLINE_BYTES = 5_000
"""Vectors up to this stay in the row, where a scan reads them at once; PostgreSQL's page has 8 KB."""
_LONGEST_TEXT = 200_000
"""Characters that lexical search sees: a tsvector holds 1 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What a collection is called in the database."""

    schema: str
    number: int
    manifest: Manifest

    @property
    def records(self) -> Any:
        """The table of records."""
        return self.named("records")

    @property
    def blobs(self) -> Any:
        """The table of bytes."""
        return self.named("blobs")

    def named(self, ending: str) -> Any:
        """An object of the collection, as a quoted identifier."""
        from psycopg import sql

        return sql.Identifier(self.schema, self.plain(ending))

    def plain(self, ending: str) -> str:
        """An object's name without its schema."""
        return f"c{self.number}_{ending}"

    def vectors(self) -> dict[str, str]:
        """The column of each further vector."""
        return {name: f"v{at}" for at, name in enumerate(sorted(self.manifest.vectors))}

    def sparse(self) -> dict[str, str]:
        """The column of each sparse vector."""
        return {name: f"s{at}" for at, name in enumerate(sorted(self.manifest.sparse))}

    def column(self, field: str | None) -> str:
        """The column of the embedding, or of a further vector."""
        return "embedding" if field is None else self.vectors()[field]

    def described(self, field: str | None) -> VectorField:
        """How long the vector is, and what its search compares."""
        if field is None:
            return VectorField(dimension=self.manifest.dimension)
        return self.manifest.vectors[field]

    def create(self, connection: Any, configuration: str) -> None:
        """Make the tables, empty."""
        from psycopg import sql

        self._check()
        columns = sql.SQL(", ").join(self._columns(configuration))
        connection.execute(
            sql.SQL("CREATE TABLE {} ({}) WITH (toast_tuple_target = 4080)").format(self.records, columns)
        )
        for column in self._inline():
            connection.execute(
                sql.SQL("ALTER TABLE {} ALTER {} SET STORAGE PLAIN").format(
                    self.records, sql.Identifier(column)
                )
            )
        connection.execute(
            sql.SQL(
                'CREATE TABLE {} (id text COLLATE "C" NOT NULL REFERENCES {} ON DELETE CASCADE, '
                'name text COLLATE "C" NOT NULL, data bytea NOT NULL, PRIMARY KEY (id, name))'
            ).format(self.blobs, self.records)
        )
        connection.execute(sql.SQL("ALTER TABLE {} ALTER data SET STORAGE EXTERNAL").format(self.blobs))
        connection.execute(
            sql.SQL("CREATE INDEX {} ON {} USING gin (metadata jsonb_path_ops)").format(
                sql.Identifier(self.plain("metadata")), self.records
            )
        )
        self._index_terms(connection)

    def change_configuration(self, connection: Any, configuration: str) -> None:
        """Split all texts anew."""
        from psycopg import sql

        connection.execute(
            sql.SQL("ALTER TABLE {} DROP COLUMN terms, ADD COLUMN {}").format(
                self.records, self._terms(configuration)
            )
        )
        self._index_terms(connection)

    def drop(self, connection: Any) -> None:
        """Remove the tables and all in them."""
        from psycopg import sql

        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}, {}").format(self.blobs, self.records))

    def _columns(self, configuration: str) -> Iterator[Any]:
        from psycopg import sql

        yield sql.SQL('id text COLLATE "C" PRIMARY KEY')
        yield sql.SQL("text text NOT NULL")
        yield sql.SQL("metadata jsonb NOT NULL")
        yield sql.SQL("embedding vector({}) NOT NULL").format(self.manifest.dimension)
        for name, column in self.vectors().items():
            dimension = self.manifest.vectors[name].dimension
            yield sql.SQL("{} vector({})").format(sql.Identifier(column), dimension)
        for column in self.sparse().values():
            yield sql.SQL("{} sparsevec({})").format(sql.Identifier(column), SPARSE_DIMENSION)
        yield self._terms(configuration)

    def _terms(self, configuration: str) -> Any:
        from psycopg import sql

        return sql.SQL(
            "terms tsvector GENERATED ALWAYS AS (to_tsvector({}::regconfig, left(text, {}))) STORED"
        ).format(configuration, _LONGEST_TEXT)

    def _index_terms(self, connection: Any) -> None:
        from psycopg import sql

        connection.execute(
            sql.SQL("CREATE INDEX {} ON {} USING gin (terms)").format(
                sql.Identifier(self.plain("terms")), self.records
            )
        )

    def _inline(self) -> list[str]:
        """The vectors that stay in the row: all, or if they do not fit, those that are small."""
        sizes = {"embedding": 4 * self.manifest.dimension} | {
            column: 4 * self.manifest.vectors[name].dimension for name, column in self.vectors().items()
        }
        kept: list[str] = []
        for column, size in sizes.items():
            if size + sum(sizes[other] for other in kept) <= _INLINE_BYTES:
                kept.append(column)
        return kept

    def _check(self) -> None:
        for field in (None, *self.manifest.vectors):
            dimension = self.described(field).dimension
            if dimension > LARGEST_DIMENSION:
                raise ConfigError(
                    f"{field or 'embedding'} has {dimension} dimensions: pgvector keeps {LARGEST_DIMENSION}"
                )
