"""Which passages a request is about: its filter and its ``corpus_ids`` as one condition for the store."""

from collections.abc import Sequence
from typing import Any

from dartboard.api.errors import Invalid
from dartboard.api.wording import plain
from dartboard.errors import InvalidInputError
from dartboard.stores import Filter, filter_from_json, parse_filter
from dartboard.stores.filters import Among, And, In, Or


def condition_of(given: str | dict[str, Any] | None, corpus_ids: Sequence[str] | None) -> Filter | None:
    """Both together; None where everything is meant."""
    parts = []
    if given is not None:
        parts.append(read_filter(given))
    if corpus_ids is not None:
        parts.append(of_corpus(corpus_ids))
    return parts[0] if len(parts) == 1 else And(tuple(parts)) if parts else None


def read_filter(given: str | dict[str, Any]) -> Filter:
    """A filter as text or as JSON."""
    try:
        return parse_filter(given) if isinstance(given, str) else filter_from_json(given)
    except InvalidInputError as error:
        raise Invalid(plain(str(error)), field="filter") from None


def of_corpus(ids: Sequence[str]) -> Filter:
    """Passages with these ids, or of these documents."""
    wanted = tuple(dict.fromkeys(ids))
    return Or((Among(wanted), In("source", wanted)))
