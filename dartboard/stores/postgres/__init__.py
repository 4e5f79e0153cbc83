"""Records in PostgreSQL with pgvector: many writers, filters in SQL, an HNSW index where it pays.

postgresql://user@host:5432/database?schema=dartboard&pool_size=8&timeout=30

| file | what is in it |
|---|---|
| ``connection.py`` | the URL, a bounded pool, the server's errors as dartboard's |
| ``schema.py`` | the schema's version, the extension, the tables of a collection |
| ``rows.py`` | records to rows and back: read, replaced, deleted |
| ``filter_sql.py`` | filters as SQL |
| ``vector_search.py`` | exact, approximate and sparse search |
| ``hnsw.py`` | when an index is built, and how wide it is searched |
| ``text_search.py`` | BM25 in one statement, and its language |
| ``collection.py``, ``store.py`` | the two protocols |
"""

from dartboard.errors import MissingExtraError

try:
    import pgvector  # noqa: F401
    import psycopg  # noqa: F401
    import psycopg_pool  # noqa: F401
except ImportError as error:
    raise MissingExtraError("psycopg", "postgres", "the PostgreSQL store") from error

from dartboard.stores.postgres.collection import PostgresCollection
from dartboard.stores.postgres.store import PostgresStore

__all__ = ["PostgresCollection", "PostgresStore"]
