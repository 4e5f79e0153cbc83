"""From a question to the text that a model reads: picks, merged and numbered, within a token budget."""

from dartboard.context.context import (
    DEFAULT_BUDGET,
    FORMATS,
    ORDERS,
    Context,
    Order,
    build_context,
    check_options,
)
from dartboard.context.formats import Format, Passage

__all__ = [
    "DEFAULT_BUDGET",
    "FORMATS",
    "ORDERS",
    "Context",
    "Format",
    "Order",
    "Passage",
    "build_context",
    "check_options",
]
