"""The beginnings of texts, for callers who want no more than so many tokens of each."""

from collections.abc import Callable, Sequence

from dartboard.deadline import check

_LETTERS_A_TOKEN = 64
"""A text is looked at no further than this: the words of all of it would take ten times its size."""

Count = Callable[[Sequence[str]], list[int]]


def beginning(text: str, most: int, count: Count) -> str:
    """As many words of a text as have at most ``most`` tokens; the first word in any case."""
    words = text[: _LETTERS_A_TOKEN * most].split()
    low, high = 1, len(words)
    while low < high:
        check()
        middle = (low + high + 1) // 2
        if count([" ".join(words[:middle])])[0] <= most:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])
