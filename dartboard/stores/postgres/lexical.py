"""Lexical search: BM25 over the term counts that ``ts_rank_cd`` gives.

Asked for all terms at once, joined by "or", ``ts_rank_cd`` adds up occurrences whatever the word; that
ranks half as well (nDCG@10 of SciFact's first 150 queries: .35; BM25 of the other stores .69, this .71).
Asked for one term it is a tenth of the times f that the term occurs, so::

    score(D) = Σ_q idf(q) · f · (k1 + 1) / (f + k1 · (1 - b + b · |D| / avgdl))
    idf(q)   = ln(1 + (N - n + 1/2) / (n + 1/2))

as in :mod:`dartboard.lexical.bm25`, but on PostgreSQL's own terms, and with ``|D|`` the number of
different terms in D, which is what a tsvector knows at once. N and avgdl are looked up once a minute.
"""

import threading
import time
from typing import Any

from dartboard.stores.filters import Filter
from dartboard.stores.manifest import lexical_settings
from dartboard.stores.postgres.conditions import condition
from dartboard.stores.postgres.tables import Table
from dartboard.types import Hit

_KNOWN_FOR = 60.0
_SAMPLE = 5000

_MATCHED = """
    WITH asked AS MATERIALIZED (
        SELECT
            lexeme,
            ('''' || replace(replace(lexeme, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS term,
            coalesce(cardinality(positions), 1) AS times,
            positions[1] AS place
        FROM collections, unnest(to_tsvector(configuration::regconfig, %(query)s))
        WHERE number = %(number)s
    ), matched AS MATERIALIZED (
        SELECT
            lexeme, id, length(terms) AS length, round(10 * ts_rank_cd(terms, term)) AS tf,
            {condition} AS kept
        FROM asked JOIN {records} ON terms @@ term
    ), weighted AS MATERIALIZED (
        SELECT lexeme, times, place, df, ln(1 + greatest(0, %(total)s - df + 0.5) / (df + 0.5)) AS idf
        FROM asked JOIN LATERAL (
            SELECT count(*)::float8 AS df FROM matched WHERE matched.lexeme = asked.lexeme
        ) AS counted ON true
    ), scored AS (
        SELECT
            id, lexeme, tf, length, kept,
            times * idf * tf * (%(k1)s + 1) / (tf + %(k1)s * (1 - %(b)s + %(b)s * length / %(mean)s)) AS score
        FROM matched JOIN weighted USING (lexeme)
    )
    """
_BEST = """
    SELECT id, sum(score) AS total FROM scored WHERE kept GROUP BY id ORDER BY total DESC, id LIMIT %(k)s
    """
_SUMMANDS = """
    SELECT lexeme, coalesce(tf, 0), df, idf, passage.length, coalesce(score, 0)
    FROM weighted
    CROSS JOIN (SELECT length(terms) AS length FROM {records} WHERE id = %(id)s) AS passage
    LEFT JOIN (SELECT lexeme, tf, score FROM scored WHERE kept) AS found USING (lexeme)
    ORDER BY place, lexeme
    """


class Lexical:
    """BM25 over one collection."""

    def __init__(self, table: Table) -> None:
        self._table = table
        given = lexical_settings(table.manifest)
        self._knobs = {"k1": float(given.get("k1", 1.2)), "b": float(given.get("b", 0.75))}
        self._lengths: tuple[int, float, float] = (0, 1.0, 0.0)
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Look up the lengths again: there are other records."""
        with self._lock:
            self._lengths = (0, 1.0, 0.0)

    def search(self, connection: Any, query: str, k: int, where: Filter | None) -> list[Hit]:
        """Best first among the records that share a term with the query."""
        text, parameters = ("true", {}) if where is None else condition(where)
        rows = self._run(connection, _MATCHED + _BEST, query, text, {**parameters, "k": k})
        return [Hit(id, float(score)) for id, score in rows]

    def explain(self, connection: Any, query: str, chunk_id: str) -> list[dict[str, Any]]:
        """What each of the query's terms adds to a record's score, in the query's order."""
        rows = self._run(connection, _MATCHED + _SUMMANDS, query, "id = %(id)s", {"id": chunk_id})
        return [
            {"term": term, "tf": int(tf), "df": int(df), "idf": idf, "length": length, "score": score}
            for term, tf, df, idf, length, score in rows
        ]

    def _run(
        self, connection: Any, statement: str, query: str, text: str, parameters: dict[str, Any]
    ) -> list[Any]:
        from psycopg import sql

        total, mean = self._known(connection)
        composed = sql.SQL(statement).format(condition=sql.SQL(text), records=self._table.records)
        given = {"query": query, "number": self._table.number, "total": total, "mean": mean}
        rows: list[Any] = connection.execute(composed, {**parameters, **given, **self._knobs}).fetchall()
        return rows

    def _known(self, connection: Any) -> tuple[int, float]:
        """How many records there are, and how many different terms they hold on average."""
        with self._lock:
            total, mean, until = self._lengths
        if time.monotonic() >= until:
            total, mean = self._looked_up(connection)
            with self._lock:
                self._lengths = (total, mean, time.monotonic() + _KNOWN_FOR)
        return total, mean

    def _looked_up(self, connection: Any) -> tuple[int, float]:
        from psycopg import sql

        counted = sql.SQL("SELECT count(*) FROM {}").format(self._table.records)
        (total,) = connection.execute(counted).fetchone()
        sampled = sql.SQL(
            "SELECT avg(length(terms))::float8 FROM {} TABLESAMPLE SYSTEM ({}) REPEATABLE (0)"
        ).format(self._table.records, min(100.0, 100.0 * _SAMPLE / max(total, 1)))
        (mean,) = connection.execute(sampled).fetchone()
        return int(total), max(float(mean or 1.0), 1.0)
