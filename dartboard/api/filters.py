"""Which passages a request is about: its filter and its ``corpus_ids`` as one condition for the store."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from dartboard.api.error_messages import plain
from dartboard.api.errors import Invalid
from dartboard.errors import InvalidInputError
from dartboard.stores import Filter, filter_from_json, parse_filter
from dartboard.stores.filters import Among, And, Exists, In, Or, check_filter


def condition_of(given: str | dict[str, Any] | None, corpus_ids: Sequence[str] | None) -> Filter | None:
    """Both together; None where everything is meant."""
    parts = []
    if given is not None:
        parts.append(read_filter(given))
    if corpus_ids is not None:
        parts.append(of_corpus(corpus_ids))
    if len(parts) < 2:
        return parts[0] if parts else None
    both = And(tuple(parts))
    with _invalid_filter():
        check_filter(both)
    return both


def read_filter(given: str | dict[str, Any]) -> Filter:
    """A filter as text or as JSON."""
    with _invalid_filter():
        return parse_filter(given) if isinstance(given, str) else filter_from_json(given)


def of_corpus(ids: Sequence[str]) -> Filter:
    """Passages with these ids, or of these documents; passages need not have a source."""
    wanted = tuple(dict.fromkeys(ids))
    return Or((Among(wanted), And((Exists("source"), In("source", wanted)))))


@contextmanager
def _invalid_filter() -> Iterator[None]:
    try:
        yield
    except InvalidInputError as error:
        raise Invalid(plain(str(error)), field="filter") from None
