"""The tables of a store's file.

A record's ``row`` is a number that is never used twice: whoever replaces a record gives it a new row. So
what an index has not seen yet are the rows beyond its last one, and what it has to forget stands in
``gone`` since its ``revision``, which every write to a collection raises. ``floor`` is the revision from
which on ``gone`` is complete: older indexes are built anew. ``derived`` names the files beside the store
that may be read, with their checksums. ``writes`` counts what was acknowledged
(:mod:`dartboard.stores.embedded.write_count`); files of earlier releases get it with their next write.

Metadata stand apart from texts and vectors, so that a filter reads little. The columns ``sum`` hold checksums
(:mod:`dartboard.stores.embedded.sums`); files of format 1 have none, those of format 2 none of collections.
"""

APPLICATION_ID = 0x44425354  # "DBST"
FORMAT_VERSION = 3
PAGE_BYTES = 16384

TABLES = """
CREATE TABLE counters (next_row INTEGER NOT NULL);
INSERT INTO counters VALUES (1);
CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    manifest TEXT NOT NULL,
    records INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    floor INTEGER NOT NULL,
    sum INTEGER
);
CREATE TABLE records (
    row INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (collection, id)
);
CREATE INDEX records_of_collection ON records (collection);
CREATE TABLE contents (
    row INTEGER PRIMARY KEY, embedding BLOB NOT NULL, text TEXT NOT NULL, sum INTEGER, vector_sum INTEGER
);
CREATE TABLE vectors (
    row INTEGER, field TEXT, data BLOB NOT NULL, sum INTEGER, PRIMARY KEY (row, field)
) WITHOUT ROWID;
CREATE TABLE sparse (
    row INTEGER, field TEXT, terms BLOB NOT NULL, weights BLOB NOT NULL, sum INTEGER, PRIMARY KEY (row, field)
) WITHOUT ROWID;
CREATE TABLE blobs (
    row INTEGER, name TEXT, data BLOB NOT NULL, sum INTEGER, PRIMARY KEY (row, name)
) WITHOUT ROWID;
CREATE TABLE gone (
    collection INTEGER, revision INTEGER, row INTEGER, PRIMARY KEY (collection, revision, row)
) WITHOUT ROWID;
CREATE TABLE derived (
    collection INTEGER, kind TEXT, folder TEXT NOT NULL, revision INTEGER NOT NULL, stamp TEXT NOT NULL,
    PRIMARY KEY (collection, kind)
) WITHOUT ROWID;
"""
ROW_TABLES = ("records", "contents", "vectors", "sparse", "blobs")
