"""The right name of an option: ``k`` where somebody writes ``top_k``, ``--also`` for ``also`` in a shell."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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


def renamed(message: str, names: Mapping[str, str]) -> str:
    """A message of the library with options called as the caller knows them: ``top_k`` for ``k``.

    Args:
        message: what the library says.
        names: the caller's name of each option.

    >>> renamed("weights count the query and each question in also: give also", {"also": "--also"})
    'weights count the query and each question in --also: give --also'
    """
    return re.sub(_mentioned(names), lambda found: names[found.group()], message)


def first_named(message: str, names: Collection[str]) -> str | None:
    """The first of ``names`` that a message mentions, or None."""
    found = re.search(_mentioned(names), message)
    return found.group() if found else None


def _mentioned(names: Collection[str]) -> str:
    """A pattern of options in a message.

    Some options are English words (``also``, ``where``): those count only at the start and after "check",
    "give" or "in". What is quoted is the caller's.
    """
    certain = [re.escape(name) for name in names if "_" in name or len(name) == 1]
    words = [re.escape(name) for name in names if "_" not in name and len(name) > 1]
    ways = [rf"(?<![-\w'\"])(?:{'|'.join(certain)})(?![-\w'\"])"] if certain else []
    if words:
        ways.append(rf"(?:^|(?<=\bcheck )|(?<=\bgive )|(?<=\bin ))(?:{'|'.join(words)})(?![-\w])")
    return "|".join(ways) or "(?!)"
