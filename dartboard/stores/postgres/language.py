"""Which text search configuration splits a collection's texts: ``settings["lexical"]`` of its manifest.

PostgreSQL has a configuration for each language that stems and drops stop words, and ``simple``, which
does neither. For one without the other, a configuration is made in the store's own schema.
"""

from typing import Any

from dartboard.errors import ConfigError
from dartboard.stores.manifest import Manifest, lexical_settings


def configuration(connection: Any, schema: str, manifest: Manifest) -> str:
    """The name of the configuration, quoted as ``regconfig`` reads it; made where it is missing."""
    given = {"language": "english", "stem": True, "stop_words": True, **lexical_settings(manifest)}
    language, stem, stop_words = given["language"], given["stem"], given["stop_words"]
    known = [name for (name,) in connection.execute(_KNOWN).fetchall()]
    if language not in known:
        raise ConfigError(
            f"PostgreSQL has no text search in {language!r}: set language in the lexical settings to one of "
            f"{', '.join(known)}"
        )
    if stem and stop_words:
        return f"pg_catalog.{language}"
    if not stem and (not stop_words or language == "simple"):
        return "pg_catalog.simple"
    return _made(connection, schema, language, stem)


_KNOWN = (
    "SELECT cfgname FROM pg_catalog.pg_ts_config WHERE cfgnamespace = 'pg_catalog'::regnamespace ORDER BY 1"
)


def _made(connection: Any, schema: str, language: str, stem: bool) -> str:
    """A copy of the language's configuration whose dictionary only stems, or only drops stop words."""
    from psycopg import errors, sql

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
