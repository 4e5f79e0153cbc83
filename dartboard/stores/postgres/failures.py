"""The server's errors in dartboard's words: what went wrong, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from dartboard.errors import (
    CollectionError,
    DartboardError,
    InvalidInputError,
    StoreError,
    StoreUnavailableError,
)
from dartboard.stores.postgres.address import Address


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Raise what psycopg raises as an error of dartboard, without secrets."""
    import psycopg

    try:
        yield
    except psycopg.Error as error:
        raise explained(error, address) from (None if _tells(error, address) else error)
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"PostgreSQL keeps text as UTF-8, which has no place for {error.object[error.start]!r}: "
            "a half of a surrogate pair; mend the text's encoding"
        ) from None


def explained(error: Exception, address: Address) -> DartboardError:
    """The error of dartboard for one of psycopg."""
    from psycopg import DataError, InterfaceError, OperationalError, errors

    said = _first_line(error, address)
    match error:
        case errors.QueryCanceled():
            return StoreError(
                f"PostgreSQL gave up after {address.timeout:g} s: narrow the query, or allow more time with "
                "?timeout=SECONDS in the store's URL"
            )
        case errors.InsufficientPrivilege():
            return StoreError(
                f"PostgreSQL refuses ({said}): the role needs USAGE and CREATE on schema {address.schema!r}, "
                "or to own it and its tables"
            )
        case errors.ReadOnlySqlTransaction():
            return StoreError("the store was opened read-only, or the server is a standby: open it to write")
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            return CollectionError(f"the collection is gone, someone dropped it ({said})")
        case errors.DiskFull() | errors.OutOfMemory():
            return StoreError(f"PostgreSQL has no room ({said}): nothing was changed; make room, try again")
        case errors.CharacterNotInRepertoire() | errors.UntranslatableCharacter() | DataError():
            return InvalidInputError(f"PostgreSQL cannot keep this: {said}")
        case OperationalError() | InterfaceError():
            return StoreUnavailableError(f"{_unreachable(said)} [{address.url}]")
    return StoreError(f"PostgreSQL: {said} [{address.url}]")


def _unreachable(said: str) -> str:
    """Connection errors carry no code before the server speaks, only its words."""
    hints = {
        "password authentication failed": "check user and password",
        "no password supplied": "give the password in PGPASSWORD, in ~/.pgpass or in the store's URL",
        "does not exist": "check the names in the store's URL; createdb makes a database",
        "pg_hba.conf": "the server does not let this user in from here: see its pg_hba.conf",
        "too many clients": "lower ?pool_size=, or raise max_connections",
        "remaining connection slots": "lower ?pool_size=, or raise max_connections",
        "terminating connection": "the connection was cut, the transaction undone; try again",
        "server closed the connection": "the connection was cut, the transaction undone; try again",
    }
    hint = next((hint for words, hint in hints.items() if words in said), "check that it runs, host and port")
    return f"PostgreSQL cannot be reached: {said}; {hint}"


def _first_line(error: Exception, address: Address) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    text = lines[0].removeprefix("connection failed: ")
    return text.replace(address.secret, "***") if address.secret else text


def _tells(error: Exception, address: Address) -> bool:
    return bool(address.secret) and address.secret in str(error)
