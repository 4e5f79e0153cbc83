"""Text search: BM25 from the term counts of ``ts_rank_cd``, and the language of the terms.

``ts_rank_cd`` for all terms joined by "or" adds up occurrences without weights, which ranks half as well
(nDCG@10 of SciFact's first 150 queries: .35; BM25 of the other stores .69, this .71). For a single term it is
a tenth of the number of occurrences f, so::

    score(D) = Σ_q idf(q) · f · (k1 + 1) / (f + k1 · (1 - b + b · |D| / avgdl))
    idf(q)   = ln(1 + (N - n + 1/2) / (n + 1/2))

as in :mod:`dartboard.lexical.bm25`, but on PostgreSQL's own terms, and ``|D|`` is the number of distinct
terms in D, because a tsvector returns that directly. N and avgdl are looked up once a minute.

PostgreSQL's text search configuration of a language stems and drops stop words; ``simple`` does neither. For
one without the other, a configuration is created in the store's own schema.
"""

import time
from typing import Any

from psycopg import errors, sql

from dartboard.errors import ConfigError
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest, lexical_settings
from dartboard.stores.postgres.filter_sql import condition
from dartboard.stores.postgres.schema import Table
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
            {matching} AS kept
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


_CONFIGURATIONS = (
    "SELECT cfgname FROM pg_catalog.pg_ts_config WHERE cfgnamespace = 'pg_catalog'::regnamespace ORDER BY 1"
)


class TextSearch:
    """BM25 over one collection."""

    def __init__(self, table: Table) -> None:
        self._table = table
        given = lexical_settings(table.manifest)
        self._parameters = {
            "number": table.number,
            "k1": float(given.get("k1", 1.2)),
            "b": float(given.get("b", 0.75)),
        }
        self._lengths = (0, 1.0, 0.0)

    def forget(self) -> None:
        """Look up the counts again: the records have changed."""
        self._lengths = (0, 1.0, 0.0)

    def search(self, connection: Any, query: str, k: int, where: Filter | None) -> list[Hit]:
        """Best first, among the records with a term of the query."""
        matching, parameters = condition(where)
        rows = self._run(connection, _MATCHED + _BEST, query, matching, {**parameters, "k": k})
        return [Hit(id, float(score)) for id, score in rows]

    def explain(self, connection: Any, query: str, chunk_id: str) -> list[dict[str, Any]]:
        """The contribution of each query term to a record's score, in the query's order."""
        rows = self._run(connection, _MATCHED + _SUMMANDS, query, "id = %(id)s", {"id": chunk_id})
        return [
            {"term": term, "tf": int(tf), "df": int(df), "idf": idf, "length": length, "score": score}
            for term, tf, df, idf, length, score in rows
        ]

    def _run(
        self, connection: Any, statement: str, query: str, matching: str, parameters: dict[str, Any]
    ) -> list[Any]:
        total, mean, until = self._lengths
        if time.monotonic() >= until:
            total, mean = self._count(connection)
            self._lengths = (total, mean, time.monotonic() + _KNOWN_FOR)
        given = {**parameters, **self._parameters, "query": query, "total": total, "mean": mean}
        rows: list[Any] = connection.execute(
            self._table.statement(statement, matching=matching), given
        ).fetchall()
        return rows

    def _count(self, connection: Any) -> tuple[int, float]:
        """The number of records, and their mean number of distinct terms."""
        (total,) = connection.execute(self._table.statement("SELECT count(*) FROM {records}")).fetchone()
        sampled = self._table.statement(
            "SELECT avg(length(terms))::float8 FROM {records} TABLESAMPLE SYSTEM ({percent}) REPEATABLE (0)",
            percent=min(100.0, 100.0 * _SAMPLE / max(total, 1)),
        )
        (mean,) = connection.execute(sampled).fetchone()
        return int(total), max(float(mean or 1.0), 1.0)


def configuration(connection: Any, schema: str, manifest: Manifest) -> str:
    """The text search configuration for the manifest's ``settings["lexical"]``.

    Its name is quoted as ``regconfig`` expects; it is created if missing.
    """
    given = {"language": "english", "stem": True, "stop_words": True, **lexical_settings(manifest)}
    language, stem, stop_words = given["language"], given["stem"], given["stop_words"]
    known = [name for (name,) in connection.execute(_CONFIGURATIONS).fetchall()]
    if language not in known:
        raise ConfigError(
            f"PostgreSQL has no text search in {language!r}: set language in the lexical settings to one of "
            f"{', '.join(known)}"
        )
    if stem and stop_words:
        return f"pg_catalog.{language}"
    if not stem and (not stop_words or language == "simple"):
        return "pg_catalog.simple"
    return _make_configuration(connection, schema, language, stem)


def _make_configuration(connection: Any, schema: str, language: str, stem: bool) -> str:
    """A copy of the language's configuration that only stems, or only drops stop words."""
    name = f"{language}_{'stems' if stem else 'words'}"
    own, dictionary = sql.Identifier(schema, name), sql.Identifier(schema, f"{name}_dictionary")
    (quoted,) = connection.execute("SELECT format('%%I.%%I', %s::text, %s::text)", (schema, name)).fetchone()
    if connection.execute(
        "SELECT 1 FROM pg_catalog.pg_ts_config c JOIN pg_catalog.pg_namespace n ON n.oid = c.cfgnamespace "
        "WHERE cfgname = %s AND nspname = %s",
        (name, schema),
    ).fetchone():
        return str(quoted)
    template = "snowball, LANGUAGE" if stem else "simple, STOPWORDS"
    try:
        with connection.transaction():
            connection.execute(
                sql.SQL("CREATE TEXT SEARCH DICTIONARY {} (TEMPLATE = pg_catalog.{} = {})").format(
                    dictionary, sql.SQL(template), sql.Identifier(language)
                )
            )
            original = sql.Identifier("pg_catalog", language)
            stemmer = sql.Identifier("pg_catalog", f"{language}_stem")
            connection.execute(
                sql.SQL("CREATE TEXT SEARCH CONFIGURATION {} (COPY = {})").format(own, original)
            )
            connection.execute(
                sql.SQL("ALTER TEXT SEARCH CONFIGURATION {} ALTER MAPPING REPLACE {} WITH {}").format(
                    own, stemmer, dictionary
                )
            )
    except errors.ConfigFileError:  # the server has no list of stop words for the language
        return "pg_catalog.simple"
    return str(quoted)
