"""The service's limits as they apply to a request: what is too much is named with its limit."""

from collections.abc import Sequence

from dartboard.api.errors import Invalid
from dartboard.api.settings import ServiceSettings
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens


def at_most(field: str, value: int | None, limit: int, what: str = "") -> None:
    """A number within a limit of the service."""
    if value is not None and value > limit:
        raise Invalid(f"{field} is limited to {limit}{what} here", field=field)


def check_query(model: EmbeddingModel, query: str, settings: ServiceSettings, field: str = "query") -> None:
    """A question no longer than the limit, in the model's own tokens."""
    most = settings.query_tokens
    if count_tokens(model, [query], most=most)[0] > most:
        raise Invalid(f"{field} is limited to {most} tokens here: shorten it", field=field)


def check_sizes(settings: ServiceSettings, **given: int | Sequence[object] | None) -> None:
    """Several numbers, or lengths of lists, against the limits of the same names."""
    for field, value in given.items():
        size = value if value is None or isinstance(value, int) else len(value)
        at_most(_FIELDS.get(field, field), size, getattr(settings, field))


_FIELDS = {"k": "top_k", "batch": "queries", "vectors": "embeddings"}
