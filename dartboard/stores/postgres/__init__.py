"""The PostgreSQL store with pgvector: many writers, filters in SQL, HNSW indexes for large collections.

postgresql://user@host:5432/database?schema=dartboard&pool_size=8&timeout=30
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
