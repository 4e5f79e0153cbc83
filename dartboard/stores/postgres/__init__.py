"""Records in PostgreSQL with pgvector: many writers, filters in SQL, an HNSW index where it pays.

postgresql://user@host:5432/database?schema=dartboard&pool_size=8&timeout=30

| file | one idea |
|---|---|
| ``address.py`` | the URL, its own parameters, and what of it may be shown |
| ``connections.py`` | a bounded pool, and how each connection is set up |
| ``failures.py`` | the server's errors in dartboard's words |
| ``migrations.py`` | the schema, its version, the extension |
| ``tables.py`` | the tables of one collection |
| ``language.py`` | which text search configuration a collection uses |
| ``conditions.py`` | filters as SQL |
| ``rows.py`` | records to rows and back |
| ``writing.py``, ``reading.py``, ``searching.py`` | what a collection does, a statement each |
| ``lexical.py`` | BM25 in one statement |
| ``hnsw.py``, ``shares.py`` | whether a search asks an index |
| ``options.py``, ``building.py``, ``tuning.py`` | how it is built, and how wide it must be searched |
| ``collection.py``, ``store.py`` | the two protocols |
"""

from dartboard.stores.postgres.collection import PostgresCollection
from dartboard.stores.postgres.store import PostgresStore

__all__ = ["PostgresCollection", "PostgresStore"]
