"""The right name of an option, for a name that is not one: ``k`` where somebody writes ``top_k``."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_SAME = (
    ("k", "top_k", "top_n", "n", "limit", "n_results", "num_results"),
    ("where", "filter", "filters"),
    ("reranker", "reranker_type"),
    ("token_budget", "tokens", "max_tokens"),
    ("triage_k", "triage", "fetch_k", "num_candidates"),
    ("query", "question", "q"),
)
"""Names for the same option, here and in other libraries."""


def right_name(wrong: str, names: Iterable[str]) -> str | None:
    """The one of ``names`` that was probably meant, or None."""
    known = list(names)
    for same in _SAME:
        if wrong in same and (found := next((name for name in same if name in known), None)):
            return found
    return next(iter(get_close_matches(wrong, known, 1)), None)


def check_names(given: Iterable[str], names: Sequence[str], function: str) -> None:
    """Refuse an option that a function does not have.

    Raises:
        TypeError: names the option that was probably meant, or all that there are.
    """
    for wrong in given:
        if wrong not in names:
            meant = right_name(wrong, names)
            advice = f"did you mean {meant!r}?" if meant else f"there are {', '.join(names)}"
            raise TypeError(f"{function}() takes no {wrong!r}: {advice}")
