"""Milvus's client prints its errors as it raises them; in our calls, raising them is enough.

The client's own log handlers stay as they are for everybody else: a filter drops what is logged while one
of our calls runs.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LOGGERS = ("pymilvus", "pymilvus.milvus_client")
_ours: ContextVar[bool] = ContextVar("dartboard_milvus_call", default=False)


class _NotOurs(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        """Whether somebody else caused the record."""
        return not _ours.get()


def hush() -> None:
    """Teach the client's handlers to leave our calls out; doing so twice does nothing."""
    for name in _LOGGERS:
        for handler in logging.getLogger(name).handlers:
            if not any(isinstance(present, _NotOurs) for present in handler.filters):
                handler.addFilter(_NotOurs())


@contextmanager
def our_call() -> Iterator[None]:
    """What is logged in here is ours."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)
