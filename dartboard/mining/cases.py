"""A case: a question from a benchmark, and what is known of its answer before any judge is asked.

:func:`read_case` reads one from YAML or JSON; what all kinds of benchmarks write down alike is read here.
"""

from dataclasses import dataclass, field
from typing import Literal

from dartboard.datasets.safe_yaml import Fields, odd_character, refused_id, string_of
from dartboard.errors import DatasetError
from dartboard.mining.safe_paths import SafeFolder

Kind = Literal["api_question", "fix_error", "multiple_choice", "question"]

TIMEOUT = 60.0
CANDIDATE = "solution.py"

CASE_KEYS = frozenset({"id", "question", "target", "targets", "answer", "answers", "facets"})
_CHECK_KEYS = frozenset({"command", "files", "timeout", "candidate"})
_NO_NUMBERS = frozenset({"nan", "inf", "infinity"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An executable truth: a test file that fails with the broken code and passes with the fixed one.

    ``command`` runs in an empty folder that holds ``files`` and, under the name ``candidate``, the code
    that is to be judged; exit code 0 means that the case is solved. A command's ``python`` is the Python
    that runs dartboard.
    """

    command: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)
    timeout: float = TIMEOUT
    candidate: str = CANDIDATE


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question with its targets: names of documents that are believed, not proved, to answer it.

    ``answers`` are strings any of which is a right answer. A question of several parts has ``facets``
    instead: every facet needs one of its strings. ``solution`` is code that solves the case, for finding
    what it imports; ``place`` says where the case was written, for messages.
    """

    id: str
    question: str
    targets: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    facets: tuple[tuple[str, ...], ...] = ()
    kind: Kind = "question"
    choices: tuple[str, ...] = ()
    unfixed: str | None = None
    solution: str | None = None
    check: Check | None = None
    place: str = ""

    def __post_init__(self) -> None:
        if not self.id.strip() or not self.question.strip():
            raise DatasetError(f"{self.place or 'a case'}: id and question must not be empty")
        if (odd := odd_character(self.id)) is not None:
            raise DatasetError(f"{self.place or 'a case'}: {refused_id(self.id, odd)}")


def read_case(
    entry: Fields, safe_folder: SafeFolder, *, kind: Kind, prefix: str = "", own_id: str = ""
) -> Case:
    """A case from its mapping; the files that it names are read now.

    Args:
        entry: the mapping.
        safe_folder: where the files are that it may name.
        kind: of the case.
        prefix: what goes before its id.
        own_id: the id, where the mapping has none.

    Raises:
        DatasetError: what is wrong in the mapping, with its line.
    """
    own = own_id or _identifier(entry, "id")
    return Case(
        id=f"{prefix}:{own}" if prefix else own,
        question=entry.string("question").strip(),
        targets=_one_or_many(entry, "target", "targets"),
        answers=_one_or_many(entry, "answer", "answers"),
        facets=_facets(entry),
        kind=kind,
        unfixed=_named_text(entry, "unfixed", safe_folder) if entry.has("unfixed") else None,
        solution=_named_text(entry, "solution", safe_folder) if entry.has("solution") else None,
        check=_check(entry.mapping("check"), safe_folder) if entry.has("check") else None,
        place=safe_folder.shown(entry.path, entry.place.line),
    )


def _identifier(entry: Fields, key: str) -> str:
    """Text that can name a case: without control characters, and nothing that looks like a missing number."""
    text = entry.string(key)
    node = entry.entries[key]
    if (odd := odd_character(text)) is not None:
        raise entry.error(refused_id(text, odd), node)
    if not node.style and text.lower().lstrip("+-.") in _NO_NUMBERS:
        raise entry.error(f"{key!r} must be a string, but {text} reads like a number: put it in quotes", node)
    return text


def _one_or_many(entry: Fields, one: str, many: str) -> tuple[str, ...]:
    """The text under one key, or the texts under another; not both, none of them blank or twice."""
    if entry.has(one) and entry.has(many):
        raise entry.error(f"give {one!r} or {many!r}, not both")
    found = [entry.string(one)] if entry.has(one) else entry.strings(many)
    if any(not text.strip() for text in found):
        raise entry.error(f"one of {many!r} is empty", entry.entries[many])
    if len(set(found)) < len(found):
        raise entry.error(f"one of {many!r} occurs twice", entry.entries[many])
    return tuple(found)


def _facets(entry: Fields) -> tuple[tuple[str, ...], ...]:
    """Parts of an answer, each a list of strings any of which will do."""
    facets = tuple(
        tuple(string_of(entry.path, one, "each string of 'facets'") for one in part.value)
        if part.id == "sequence"
        else (string_of(entry.path, part, "each of 'facets'"),)
        for part in entry.items("facets")
    )
    if any(not facet or any(not text.strip() for text in facet) for facet in facets):
        raise entry.error("one of 'facets' is empty", entry.entries["facets"])
    return facets


def prefix_of(entry: Fields, kind: str) -> str:
    """What goes before the ids of a benchmark."""
    return _identifier(entry, "prefix") if entry.has("prefix") else kind


def _named_text(entry: Fields, key: str, safe_folder: SafeFolder) -> str:
    """The text of the file that a key names."""
    try:
        return safe_folder.text(entry.string(key))
    except DatasetError as error:
        raise entry.error(f"{key!r}: {error}", entry.entries[key]) from None


def named_texts(entry: Fields, key: str, safe_folder: SafeFolder) -> dict[str, str]:
    """The files that a list names, by the last part of their names."""
    texts: dict[str, str] = {}
    for name in entry.strings(key):
        try:
            path = safe_folder.path(name)
            if path.name in texts:
                raise DatasetError(f"two files are called {path.name!r}")
            texts[path.name] = safe_folder.text(name)
        except DatasetError as error:
            raise entry.error(f"{key!r}: {error}", entry.entries[key]) from None
    return texts


def _check(entry: Fields, safe_folder: SafeFolder) -> Check:
    entry.only(_CHECK_KEYS)
    command = tuple(entry.strings("command"))
    if not command:
        raise entry.error("'command' is missing: a list such as [python, test_it.py]")
    return Check(
        command=command,
        files=named_texts(entry, "files", safe_folder),
        timeout=entry.number("timeout", TIMEOUT, least=0.1, most=3600),
        candidate=entry.string("candidate") if entry.has("candidate") else CANDIDATE,
    )
