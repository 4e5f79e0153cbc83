"""A schema of a PostgreSQL database as a store."""

from pathlib import Path
from typing import Any, Self

from dartboard.stores.base import DEFAULT_COLLECTION
from dartboard.stores.checks import check_name, exists_already, missing
from dartboard.stores.manifest import Manifest, manifest_from_json, manifest_to_json
from dartboard.stores.postgres import rows
from dartboard.stores.postgres.collection import PostgresCollection
from dartboard.stores.postgres.connection import Connections, parse_address
from dartboard.stores.postgres.filter_sql import to_json
from dartboard.stores.postgres.schema import Table, find_vector, set_up
from dartboard.stores.postgres.text_search import configuration
from dartboard.stores.postgres.vector_search import HnswOptions
from dartboard.stores.snapshot_file import read_snapshot_file

_LACKING = """
SELECT 'make tables in schema ' || %(schema)s
WHERE NOT has_schema_privilege(to_regnamespace(quote_ident(%(schema)s))::oid, 'CREATE')
UNION ALL
SELECT 'write to table ' || relname FROM pg_class
WHERE relnamespace = to_regnamespace(quote_ident(%(schema)s)) AND relkind = 'r'
AND NOT (has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE')
    AND has_table_privilege(oid, 'DELETE'))
LIMIT 1
"""


class PostgresStore:
    """Collections in one schema; other schemas and tables of the database are never touched.

    Opening makes the schema, unless ``read_only`` is set.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        schema: str | None = None,
        pool_size: int | None = None,
        timeout: float | None = None,
    ) -> None:
        self._address = parse_address(url, schema=schema, pool_size=pool_size, timeout=timeout)
        self._connections = Connections(self._address, read_only=read_only)
        with self._connections.first() as connection:
            self._connections.extension_schema = find_vector(connection, read_only=read_only)
            set_up(connection, self._address.schema, read_only=read_only)

    @property
    def url(self) -> str:
        """The URL of the store, without passwords."""
        return self._address.url

    def collections(self) -> list[str]:
        """The names of the collections, sorted."""
        with self._connections.reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM collections ORDER BY name")]

    def create(self, name: str, manifest: Manifest) -> PostgresCollection:
        """A new empty collection."""
        with self._connections.writing() as connection:
            table = self._create(connection, name, manifest)
        return PostgresCollection(self._connections, name, table)

    def open(self, name: str = DEFAULT_COLLECTION) -> PostgresCollection:
        """A collection that exists."""
        with self._connections.reading() as connection:
            table = self._find(connection, name)
        return PostgresCollection(self._connections, name, table)

    def drop(self, name: str) -> None:
        """Delete a collection with all its records."""
        with self._connections.writing() as connection:
            table = self._find(connection, name)
            connection.execute("DELETE FROM collections WHERE number = %s", (table.number,))
            table.drop(connection)

    def restore(self, path: str | Path, name: str | None = None) -> PostgresCollection:
        """A new collection from a snapshot, all or none of it."""
        stored_name, manifest, batches = read_snapshot_file(path)
        with self._connections.writing() as connection:
            table = self._create(connection, name or stored_name, manifest)
            for batch in batches:
                manifest.check(batch)
                rows.put(connection, table, batch)
        return PostgresCollection(self._connections, name or stored_name, table)

    def why_not_writable(self) -> str:
        """The privilege that this role lacks to write; empty if none. Changes nothing."""
        schema = self._address.schema
        with self._connections.reading() as connection:
            (standby,) = connection.execute("SELECT pg_is_in_recovery()").fetchone()
            if standby:
                return "the server is a standby, which only reads"
            lacking = connection.execute(_LACKING, {"schema": schema}).fetchone()
        return f"the role may not {lacking[0]}" if lacking else ""

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _create(self, connection: Any, name: str, manifest: Manifest) -> Table:
        check_name(name)
        HnswOptions.of(manifest)
        wanted = configuration(connection, self._address.schema, manifest)
        row = connection.execute(
            "INSERT INTO collections (name, manifest, configuration) VALUES (%s, %s, %s) "
            "ON CONFLICT (name) DO NOTHING RETURNING number",
            (name, to_json(manifest_to_json(manifest)), wanted),
        ).fetchone()
        if row is None:
            raise exists_already(name)
        table = Table(schema=self._address.schema, number=row[0], manifest=manifest)
        table.create(connection, wanted)
        return table

    def _find(self, connection: Any, name: str) -> Table:
        row = connection.execute(
            "SELECT number, manifest FROM collections WHERE name = %s", (name,)
        ).fetchone()
        if row is None:
            known = connection.execute("SELECT name FROM collections ORDER BY name")
            raise missing(name, [each for (each,) in known])
        return Table(schema=self._address.schema, number=row[0], manifest=manifest_from_json(row[1]))
