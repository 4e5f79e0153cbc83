"""Token counts for the model that reads the passages, if it is not the embedding model.

A token budget usually refers to the reader's tokens. A tokenizer is one of

    ``"cl100k_base"``, ``"gpt-4o"``     an encoding or a model that tiktoken knows
    ``"folder/tokenizer.json"``         a file of the tokenizers library, as model hubs have it
    a function                          from a text to a count or a list of tokens
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Integral
from pathlib import Path
from typing import Any

from dartboard.errors import ConfigError, install_command

Tokenizer = str | Callable[[str], Any]


class ReaderTokenizer:
    """Counts tokens with a function of one text."""

    def __init__(self, name: str, function: Callable[[str], Any]) -> None:
        self.name, self._function = name, function

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text.

        Raises:
            ConfigError: the function returned neither a count nor a list of tokens.
        """
        return [self._count(text) for text in texts]

    def _count(self, text: str) -> int:
        found = self._function(text)
        if isinstance(found, Mapping) and "input_ids" in found:  # what transformers' tokenizers return
            found = found["input_ids"]
        if isinstance(found, Sequence) and not isinstance(found, (str, bytes)):
            return len(found)
        if isinstance(found, bool) or not isinstance(found, Integral) or found < 0:
            raise ConfigError(
                f"tokenizer must return a count or a list of tokens, got {type(found).__name__}"
            )
        return int(found)


def reader_tokenizer(tokenizer: Tokenizer) -> ReaderTokenizer:
    """A tokenizer by name, file or function.

    Args:
        tokenizer: See the module's docstring.

    Raises:
        ConfigError: there is no such tokenizer, or tiktoken is not installed.

    Example:
        >>> reader_tokenizer(str.split).count_tokens(["three little words"])
        [3]
    """
    if callable(tokenizer):
        return ReaderTokenizer(getattr(tokenizer, "__name__", "function"), tokenizer)
    if not isinstance(tokenizer, str) or not tokenizer:
        raise ConfigError(f"tokenizer must be a name, a file or a function, got {tokenizer!r}")
    return _by_file(tokenizer) if tokenizer.endswith(".json") else tiktoken_tokenizer(tokenizer)


@lru_cache(maxsize=8)
def _by_file(path: str) -> ReaderTokenizer:
    from tokenizers import Tokenizer as HubTokenizer

    if not Path(path).is_file():
        raise ConfigError(f"there is no tokenizer file {path!r}")
    try:
        opened = HubTokenizer.from_file(path)
    except Exception as problem:
        raise ConfigError(f"{path!r} is not a file of the tokenizers library: {problem}") from problem
    opened.no_truncation()
    opened.no_padding()
    return ReaderTokenizer(path, lambda text: len(opened.encode(text, add_special_tokens=False).ids))


@lru_cache(maxsize=8)
def tiktoken_tokenizer(name: str) -> ReaderTokenizer:
    """An encoding or model of tiktoken, by name; tiktoken downloads its file on first use.

    Raises:
        ConfigError: tiktoken is not installed, does not know the name, or cannot fetch the file.
    """
    try:
        import tiktoken
    except ImportError as problem:
        raise ConfigError(
            f"tokenizer {name!r} needs tiktoken: {install_command('tiktoken')}, or give a tokenizer.json"
        ) from problem
    known = tiktoken.list_encoding_names()
    try:
        encoding = tiktoken.get_encoding(name) if name in known else tiktoken.encoding_for_model(name)
    except KeyError as problem:
        raise ConfigError(
            f"unknown tokenizer {name!r}: give one of {', '.join(known)}, a model's name such as gpt-4o, or "
            "a tokenizer.json"
        ) from problem
    except Exception as problem:
        raise ConfigError(f"tiktoken could not load {name!r}: {problem}") from problem
    return ReaderTokenizer(name, lambda text: len(encoding.encode_ordinary(text)))
