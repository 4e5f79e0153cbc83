"""Text to terms, the same for passages and queries.

1. Text is normalised (NFKC) and cut into words: letters, digits and marks, joined by ``_ . - :: ->``.
2. A plain word is case folded, dropped if it is a stop word, and stemmed (snowball).
3. An identifier (``get_user_id``, ``HTTPServer``, ``v1.2.3``, ``foo.bar()``) gives itself and each of its
   parts: ``self.get_id`` gives self.get_id, self, get_id, get, id. The whole is rare, so an exact match ranks
   first; the parts match other spellings.
4. Scripts without spaces (Chinese, Japanese) give pairs of adjacent characters.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

from dartboard.errors import ConfigError, MissingExtraError
from dartboard.lexical.stop_words import STOP_WORDS

LANGUAGES = (
    *("arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "estonian", "finnish"),
    *("french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian"),
    *("nepali", "norwegian", "portuguese", "romanian", "russian", "serbian", "spanish", "swedish"),
    *("tamil", "turkish", "yiddish"),
)
"""Languages with stemming; for others use ``stem=False``."""

# ``\w`` excludes the combining marks that are part of words in many scripts.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf\u05c1-\u05c2\u064b-\u065f\u0670\u06d6-\u06dc\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09d7\u0a01-\u0a03\u0a3c-\u0a51\u0a70\u0a71"
    "\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c56"
    "\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc"
    "\u102b-\u103e\u17b4-\u17d3"
)
_LETTERS = rf"[\w{_MARKS}]"
_WORD = re.compile(rf"{_LETTERS}+(?:(?:[.-]|::|->){_LETTERS}+)*(?:\+\+|#(?!\w))?")
_JOINTS = re.compile(r"[.\-:>+#]+")
_UNDERSCORES = re.compile("_+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f"
_UNSPACED_RUN = re.compile(rf"([{_UNSPACED}]+)")

_stemming = Lock()


@dataclass(frozen=True, slots=True)
class Analyzer:
    """Splits text into terms, the same for passages and queries.

    Args:
        language: One of :data:`LANGUAGES`.
        stem: Reduce words to their stems; needs PyStemmer.
        stop_words: Drop the language's stop words, if there is a list.

    Raises:
        ConfigError: the language is unknown.

    Example:
        >>> Analyzer().terms("Reads get_user_id")
        ['read', 'get_user_id', 'get', 'user', 'id']
    """

    language: str = "english"
    stem: bool = True
    stop_words: bool = True

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ConfigError(
                f"language must be one of {', '.join(LANGUAGES)}; got {self.language!r}. "
                "For another language: Analyzer(stem=False, stop_words=False)"
            )

    def terms(self, text: str) -> list[str]:
        """The terms of a text, in order and with repetitions."""
        return [term for word in words(text) for term in _terms_of(self, word)]

    def terms_of(self, word: str) -> tuple[str, ...]:
        """The terms of one of :func:`words`: none for a stop word, several for an identifier."""
        return _terms_of(self, word)

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Analyzer":
        """The analyzer from :meth:`to_json`."""
        match data:
            case {"language": str(language), "stem": bool(stem), "stop_words": bool(stop_words)}:
                return cls(language, stem, stop_words)
        raise ConfigError(f"expected an analyzer's language, stem and stop_words, got {dict(data)!r}")


def words(text: str) -> list[str]:
    """The words and identifiers of a text in their original spelling."""
    return _WORD.findall(text if text.isascii() else unicodedata.normalize("NFKC", text))


@lru_cache(maxsize=200_000)
def _terms_of(analyzer: Analyzer, word: str) -> tuple[str, ...]:
    if not word.isascii() and _UNSPACED_RUN.search(word):
        return tuple(_pairs(analyzer, word))
    for joint in (_JOINTS, _UNDERSCORES):
        if joint.search(word):
            pieces = [piece for piece in joint.split(word) if piece]
            whole = [word.casefold()] if pieces else []
            return (*whole, *(term for piece in pieces for term in _terms_of(analyzer, piece)))
    humps = _HUMPS.split(word)
    whole = [_stem(analyzer, word.casefold())] if len(humps) > 1 else []
    return (*whole, *(term for hump in humps for term in _plain(analyzer, hump.casefold())))


def _pairs(analyzer: Analyzer, word: str) -> list[str]:
    """Pairs of adjacent characters of unspaced scripts; the text between them as words."""
    terms: list[str] = []
    for piece in _UNSPACED_RUN.split(word):
        if not _UNSPACED_RUN.match(piece):
            terms += [term for inner in _WORD.findall(piece) for term in _terms_of(analyzer, inner)]
        elif len(piece) == 1:
            terms.append(piece)
        else:
            terms += [piece[at : at + 2] for at in range(len(piece) - 1)]
    return terms


def _plain(analyzer: Analyzer, word: str) -> tuple[str, ...]:
    if analyzer.stop_words and word in STOP_WORDS.get(analyzer.language, ()):
        return ()
    return (_stem(analyzer, word),)


def _stem(analyzer: Analyzer, word: str) -> str:
    if not analyzer.stem:
        return word
    with _stemming:
        return str(_stemmer(analyzer.language).stemWord(word))


@lru_cache(maxsize=8)
def _stemmer(language: str) -> Any:
    try:
        import Stemmer
    except ImportError as error:
        raise MissingExtraError("PyStemmer", "search", "stemming (or Analyzer(stem=False))") from error
    return Stemmer.Stemmer(language)
