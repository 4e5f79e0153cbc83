"""Check texts for a model, batch them, and count their tokens."""

from collections.abc import Callable, Iterator, Sequence

from dartboard.deadline import check, remaining
from dartboard.errors import ConfigError, InvalidInputError

LETTERS_PER_TOKEN = 16
"""More characters than a token of normal text has; see :func:`count_tokens`."""

_LETTERS_PER_STEP = 4000
_FEWEST = 4


def check_texts(texts: str | Sequence[str]) -> list[str]:
    """The texts as a list; a single string is a list of one.

    Raises:
        InvalidInputError: a text is not a string, blank or not valid Unicode; the message has its index.
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
                f"text {index} contains a lone surrogate and is not valid Unicode: decode it with "
                "errors='replace'"
            ) from None
    return listed


def batches_by_length(texts: Sequence[str], batch_size: int) -> Iterator[list[int]]:
    """The indices of the texts in batches of similar length, longest first, to avoid padding.

    The deadline is checked before each batch. A model call cannot be interrupted, so under a deadline batches
    of long texts are smaller (about 4,000 characters, at least four texts) and an expired request stops
    sooner. Without a deadline, batches have the requested size.

    Raises:
        ConfigError: ``batch_size`` is below 1.
    """
    check_batch_size(batch_size)
    # Longest first: the first batch shows whether memory suffices. Equal lengths keep their order.
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
    """Check that a batch holds at least one text."""
    if batch_size < 1:
        raise ConfigError(f"batch_size must be >= 1, got {batch_size}")


def count_tokens(model: object, texts: Sequence[str], *, most: int | None = None) -> list[int]:
    """The number of tokens of each text, for budgets, limits and chunk sizes.

    Args:
        model: Counts with its method ``count_tokens``; without that method, or for None,
            :func:`dartboard.ingest.estimate_tokens` counts.
        texts: The texts; a model's own count rejects blank texts.
        most: The caller's limit, if any. A text that is certainly above it is not tokenized, because that
            takes hundreds of bytes per token; its count is then a lower bound.

    Returns:
        ``max(1, tokens, characters // 16)`` for each text. The minimum is needed because a tokenizer may
        treat a word of any length as one unknown token, so that megabytes would cost nothing.

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
