"""The PostgreSQL store with pgvector: many writers, filters in SQL, HNSW indexes for large collections.

postgresql://user@host:5432/database?schema=dartboard&pool_size=8&timeout=30

| file | what is in it |
|---|---|
| ``connection.py`` | the URL, a bounded pool, translation of the server's errors |
| ``schema.py`` | the schema's version, the extension, the tables of a collection |
| ``rows.py`` | read, replace and delete records as rows |
| ``filter_sql.py`` | filters as SQL |
| ``vector_search.py`` | exact, approximate and sparse search |
| ``hnsw.py`` | when an index is built, and its search width (``ef_search``) |
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
