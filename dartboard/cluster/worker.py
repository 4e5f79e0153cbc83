"""What a worker does with a piece of work: look the function up, call it, put its errors into words.

An exception that travels as an object would have to be taken apart and put together again by whatever
version of its class is at the other end. Its name and its message are enough.
"""

import socket
from importlib import import_module
from typing import Any

from dartboard import errors
from dartboard.errors import ClusterError, DartboardError

Outcome = tuple[str, str, Any]
"""The name of an error or nothing, its message, and what the work gave."""


def perform(work: str, arguments: tuple[Any, ...]) -> Outcome:
    """Call ``module:function`` on a worker."""
    try:
        module, _, name = work.partition(":")
        return "", "", getattr(import_module(module), name)(*arguments)
    except DartboardError as error:
        return type(error).__name__, f"{error} (on {socket.gethostname()})", None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told to the one who waits
        said = f"{type(error).__name__} {error}".strip()
        return ClusterError.__name__, f"a worker on {socket.gethostname()} failed: {said}", None


def unwrapped(outcome: Outcome) -> Any:
    """What the work gave, or its error, raised here."""
    name, message, value = outcome
    if not name:
        return value
    kind = getattr(errors, name, ClusterError)
    # Not by calling it: some errors make their message of other arguments.
    raise kind.__new__(kind, message)
