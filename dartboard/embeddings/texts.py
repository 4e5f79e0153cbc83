"""Texts on their way into a model: checked, put into batches, counted in tokens."""

from collections.abc import Callable, Iterator, Sequence

from dartboard.deadline import check, remaining
from dartboard.errors import ConfigError, InvalidInputError

LETTERS_PER_TOKEN = 16
"""More than a token of running text has; see :func:`count_tokens`."""

_LETTERS_PER_STEP = 4000
_FEWEST = 4


def check_texts(texts: str | Sequence[str]) -> list[str]:
    """The texts as a list; a lone string is a list of one.

    Raises:
        InvalidInputError: a text is no string, is blank or is no valid Unicode; it is named by its index.
    """
    if isinstance(texts, str):
        texts = [texts]
    try:
        listed = list(texts)
    except TypeError:
        raise InvalidInputError(f"expected a text or a list of texts, got {type(texts).__name__}") from None
    for index, text in enumerate(listed):
        if not isinstance(text, str):
            raise InvalidInputError(f"text {index} is not a string: got {type(text).__name__}")
        if not text.strip():
            raise InvalidInputError(f"text {index} is empty: drop it or give it some words")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInputError(
                f"text {index} holds a lone surrogate and is no valid Unicode: decode it with "
                "errors='replace'"
            ) from None
    return listed


def batches_by_length(texts: Sequence[str], batch_size: int) -> Iterator[list[int]]:
    """The indices of the texts in batches of similar length, so that little is padding; longest first.

    The deadline is checked before each batch. A call of the model cannot be interrupted, so under a deadline
    batches of long texts are smaller (some 4,000 letters, four texts at least): an abandoned request is
    noticed sooner. Without a deadline batches are as large as asked for.

    Raises:
        ConfigError: ``batch_size`` is below 1.
    """
    check_batch_size(batch_size)
    # Longest first: if memory does not suffice, the first batch shows it. Equal lengths keep their order.
    lengths = list(map(len, texts))
    order = sorted(range(len(texts)), key=lengths.__getitem__, reverse=True)
    start = 0
    while start < len(order):
        check()
        size = batch_size
        if remaining() is not None:
            size = min(size, max(_FEWEST, _LETTERS_PER_STEP // max(1, lengths[order[start]])))
        yield order[start : start + size]
        start += size


def check_batch_size(batch_size: int) -> None:
    """Raise ConfigError unless a batch holds at least one text."""
    if batch_size < 1:
        raise ConfigError(f"batch_size must be >= 1, got {batch_size}")


def count_tokens(model: object, texts: Sequence[str], *, most: int | None = None) -> list[int]:
    """How many tokens each text costs: the one count behind budgets, limits and chunk sizes.

    Args:
        model: whose tokenizer counts, by its method ``count_tokens``; a model without one, or None, leaves it
            to :func:`dartboard.ingest.estimate_tokens`.
        texts: what to count; a model's own count refuses blank texts.
        most: the caller's limit, if any. A text that is certainly above it is not tokenized, since that takes
            hundreds of bytes a token; its count is a lower bound.

    Returns:
        ``max(1, tokens, letters // 16)`` for each text. The floor is there because a tokenizer may take a
        word of any length for one unknown token, which would make megabytes of it cost nothing.

    Example:
        >>> count_tokens(None, ["Hello, world!"])
        [4]
    """
    floors = [max(1, len(text) // LETTERS_PER_TOKEN) for text in texts]
    counted = [row for row, floor in enumerate(floors) if most is None or floor <= most]
    own: Callable[[list[str]], list[int]] = getattr(model, "count_tokens", None) or _estimates
    if counted:
        for row, tokens in zip(counted, own([texts[row] for row in counted]), strict=True):
            floors[row] = max(floors[row], int(tokens))
    return floors


def _estimates(texts: list[str]) -> list[int]:
    from dartboard.ingest import estimate_tokens

    return [estimate_tokens(text) for text in texts]
