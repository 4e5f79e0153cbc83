"""Cases from a registry: a YAML or JSON file, or a folder that has one.

::

    benchmarks:
      - {kind: api_questions, file: questions.yaml}
      - {kind: fix_errors, folder: fix_errors, files: [checking.py]}
      - {kind: multiple_choice, file: choices.yaml, prefix: quiz}
      - {kind: labelled, dataset: hotpotqa, limit: 50}
    cases:
      - {id: "mine:01", question: "…", target: "package.module.Name", answer: "…"}

A case's id is its own behind the prefix of its benchmark, by default the kind: ``fix_errors:01``. Files that
a registry names must lie in its folder.

To read another kind of benchmark, write a function like :func:`_questions` and name it in ``ADAPTERS``.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from string import ascii_uppercase
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from dartboard.datasets.catalogue import load_text
from dartboard.datasets.mined import STRICT
from dartboard.datasets.records import Place
from dartboard.datasets.safe_yaml import Identifier, Text, read_yaml
from dartboard.datasets.text_dataset import TextDataset, unique
from dartboard.errors import DatasetError
from dartboard.mining.cases import CANDIDATE, TIMEOUT, Case, Check, Kind, Seconds, labelled_case
from dartboard.mining.corpora.memory_corpus import read_dataset

NAMES = ("registry.yaml", "registry.yml", "registry.json")
_SOLUTION_FILES = ("unfixed.py", "fixed.py")


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class CheckEntry:
    """A check in a registry; ``files`` are paths."""

    command: Annotated[tuple[Text, ...], Field(min_length=1)]
    files: tuple[Text, ...] = ()
    timeout: Seconds = TIMEOUT
    candidate: Text = CANDIDATE


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Entry:
    """A case in a registry; ``solution`` and ``unfixed`` are paths, ``correct`` a choice or its letter."""

    id: Identifier | None = None
    question: Text
    target: Text | None = None
    targets: tuple[Text, ...] = ()
    answer: Text | None = None
    answers: tuple[Text, ...] = ()
    facets: tuple[Text | tuple[Text, ...], ...] = ()
    choices: tuple[Text, ...] = ()
    correct: Text | None = None
    solution: Text | None = None
    unfixed: Text | None = None
    check: CheckEntry | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Benchmark:
    """A benchmark in a registry."""

    kind: Literal["api_questions", "fix_errors", "multiple_choice", "labelled"]
    prefix: Identifier | None = None
    file: Text | None = None
    folder: Text | None = None
    files: tuple[Text, ...] = ()
    timeout: Seconds = TIMEOUT
    dataset: Text | None = None
    split: Text | None = None
    limit: Annotated[int, Field(ge=1)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Registry:
    """The whole file."""

    benchmarks: tuple[Benchmark, ...] = ()
    cases: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Questions:
    """A file of cases."""

    cases: Annotated[tuple[Entry, ...], Field(min_length=1)]


def load_cases(path: Path | str) -> list[Case]:
    """All cases of a registry, in its order.

    Args:
        path: the registry's file, or a folder that has one.

    Raises:
        DatasetError: what is wrong in a file, with its line.
    """
    file = _registry_file(Path(path))
    registry, lines = read_yaml(file, Registry)
    cases: dict[str, Case] = {}
    found: list[Case] = []
    for number, benchmark in enumerate(registry.benchmarks):
        place = Place(file, lines.of("benchmarks", number))
        found += ADAPTERS[benchmark.kind](benchmark, file.parent, place)
    for number, entry in enumerate(registry.cases):
        found.append(_case(entry, file, lines.of("cases", number), "question", ""))
    for case in found:
        if case.id in cases:
            raise DatasetError(
                f"{case.place}: id {case.id!r} occurs twice, first at {cases[case.id].place}", field="id"
            )
        cases[case.id] = case
    if not cases:
        raise Place(file, 1).error("there are no cases: give 'benchmarks', 'cases' or both")
    return list(cases.values())


def labelled_cases(
    data: TextDataset, *, prefix: str = "", limit: int | None = None, place: str = ""
) -> list[Case]:
    """A case for each of the first questions of a BEIR or QA data set that is not blank.

    Where a set says which passages an answer requires, these are the targets; else all that it calls
    relevant.
    """
    asked = [(query_id, text) for query_id, text in data.queries.items() if text.strip()]
    return [
        labelled_case(
            id=f"{prefix}:{query_id}" if prefix else query_id,
            question=text,
            targets=_targets(data, query_id),
            answers=tuple(unique([answer for answer in data.answers.get(query_id, []) if answer.strip()])),
            place=place or data.name,
        )
        for query_id, text in asked[:limit]
    ]


def _questions(benchmark: Benchmark, folder: Path, place: Place) -> Iterator[Case]:
    """A file of cases: questions about an interface, or with choices of which one is right.

    ::

        cases:
          - id: "01"
            question: "Which service keeps sessions in memory?"
            choices: ["DatabaseSessionService", "InMemorySessionService"]   # of multiple_choice
            correct: "B"                                                    # the letter, or the choice
            target: "package.module.Name"
    """
    file = _inside(folder, benchmark.file, "file", place)
    found, lines = read_yaml(file, Questions)
    kind: Kind = "multiple_choice" if benchmark.kind == "multiple_choice" else "api_question"
    for number, entry in enumerate(found.cases):
        line = lines.of("cases", number)
        case = _case(entry, file, line, kind, benchmark.prefix or benchmark.kind)
        lacking = [
            what
            for what, given in (("target", case.targets), ("answer", case.answers or case.facets))
            if not given and kind == "api_question"
        ]
        if kind == "multiple_choice" and not case.choices:
            lacking.append("choices")
        if lacking:
            raise Place(file, line).error(f"{lacking[0]!r} is missing: {benchmark.kind} need it")
        yield case


def _fix_errors(benchmark: Benchmark, folder: Path, place: Place) -> Iterator[Case]:
    """Broken code, the same code fixed, and a test that tells them apart; a folder each, by rising name.

    ::

        fix_errors/
          01/
            case.yaml       question, target(s); optional answer(s)
            unfixed.py      fails the test
            fixed.py        passes it
            test_01.py      run beside the candidate, which is called solution.py

    The test runs by Python alone in an empty folder with the candidate, the case's other ``.py`` files and
    the ``files`` that the registry adds to every case; exit code 0 means solved.
    """
    shared = _texts(folder, benchmark.files, place)
    top = _inside(folder, benchmark.folder, "folder", place)
    if not top.is_dir():
        raise place.error(f"'folder': {top} is no folder")
    folders = sorted(path for path in top.iterdir() if path.is_dir() and path.name[0] not in "._")
    if not folders:
        raise place.error(f"'folder': {top} has no case: expected a folder for each")
    for one in folders:
        about = one / "case.yaml"
        entry, _ = read_yaml(about, Entry)
        tests = sorted(path.name for path in one.glob("test_*.py"))
        if len(tests) != 1:
            raise DatasetError(
                f"{one} must have one test_*.py beside unfixed.py and fixed.py, has "
                f"{', '.join(tests) or 'none'}"
            )
        own = tuple(sorted(path.name for path in one.glob("*.py") if path.name not in _SOLUTION_FILES))
        files = shared | _texts(one, own, Place(about, 1))
        if CANDIDATE in files or shared.keys() & set(own):
            raise DatasetError(f"{one}: {CANDIDATE} and names of files for all cases cannot be used here")
        unfixed, fixed = (_text(_inside(one, name, name, Place(about, 1))) for name in _SOLUTION_FILES)
        if unfixed == fixed:
            raise DatasetError(f"{one}: fixed.py is the same as unfixed.py")
        yield _case(
            entry,
            about,
            1,
            "fix_error",
            benchmark.prefix or benchmark.kind,
            own_id=one.name,
            unfixed=unfixed,
            solution=fixed,
            check=Check(command=("python", tests[0]), files=files, timeout=benchmark.timeout),
        )


def _labelled(benchmark: Benchmark, folder: Path, place: Place) -> list[Case]:
    """The first ``limit`` questions of a data set; ``dataset`` is a path below the registry, or a name."""
    name = benchmark.dataset
    if name is None:
        raise place.error("'dataset' is missing: the name of a data set, or its path")
    try:
        if (folder / name).exists() or ".." in Path(name).parts:
            path = _inside(folder, name, "dataset", place)
            data = read_dataset(str(path), split=benchmark.split)
        else:
            data = load_text(name, split=benchmark.split, fetch=False)
    except DatasetError as error:
        raise place.error(f"'dataset': {error}") from None
    prefix = benchmark.prefix or data.name
    return labelled_cases(data, prefix=prefix, limit=benchmark.limit, place=str(place))


ADAPTERS: dict[str, Callable[[Benchmark, Path, Place], Any]] = {
    "api_questions": _questions,
    "fix_errors": _fix_errors,
    "labelled": _labelled,
    "multiple_choice": _questions,
}


def _case(
    entry: Entry, file: Path, line: int, kind: Kind, prefix: str, *, own_id: str = "", **more: Any
) -> Case:
    """A case from its entry; the files that it names are read now."""
    place = Place(file, line)
    own = own_id or entry.id
    if own is None:
        raise place.error("'id' is missing")
    for one, many in (("target", "targets"), ("answer", "answers")):
        if getattr(entry, one) is not None and getattr(entry, many):
            raise place.error(f"give {one!r} or {many!r}, not both")
        if len(set(getattr(entry, many))) < len(getattr(entry, many)):
            raise place.error(f"one of {many!r} occurs twice")
    answers = entry.answers or ((entry.answer,) if entry.answer else ())
    if entry.choices:
        answers = (_correct(entry, place),)
    named: dict[str, Any] = {
        name: _text(_inside(file.parent, path, name, place))
        for name, path in (("solution", entry.solution), ("unfixed", entry.unfixed))
        if path is not None
    }
    if entry.check is not None:
        check = entry.check
        named["check"] = Check(
            command=check.command,
            files=_texts(file.parent, check.files, place),
            timeout=check.timeout,
            candidate=check.candidate,
        )
    return Case(
        id=f"{prefix}:{own}" if prefix else own,
        question=entry.question.strip(),
        targets=entry.targets or ((entry.target,) if entry.target else ()),
        answers=answers,
        facets=tuple((part,) if isinstance(part, str) else part for part in entry.facets),
        kind=kind,
        choices=entry.choices,
        place=f"{Path(*file.parts[-2:])}, line {line}",
        **{**named, **more},
    )


def _correct(entry: Entry, place: Place) -> str:
    choices, said = entry.choices, entry.correct or ""
    if not 2 <= len(set(choices)) == len(choices) <= len(ascii_uppercase):
        raise place.error("'choices' must be 2 to 26 different texts")
    letters = ascii_uppercase[: len(choices)]
    if said in choices:
        return said
    if len(said) == 1 and said.upper() in letters:
        return choices[letters.index(said.upper())]
    raise place.error(f"'correct' must be one of the choices or a letter A … {letters[-1]}, got {said!r}")


def _targets(data: TextDataset, query_id: str) -> tuple[str, ...]:
    if kernel := data.kernels.get(query_id):
        return tuple(kernel)
    judged = data.qrels.get(query_id, {})
    return tuple(
        sorted((one for one, grade in judged.items() if grade > 0), key=lambda one: (-judged[one], one))
    )


def _registry_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.exists():
        raise DatasetError(
            f"there is no {path}: name a registry (YAML or JSON) or a folder that has one", field="registry"
        )
    found = [path / name for name in NAMES if (path / name).is_file()]
    if len(found) != 1:
        problem = "no registry" if not found else f"several registries ({', '.join(f.name for f in found)})"
        raise DatasetError(f"{path} has {problem}: expected one of {', '.join(NAMES)}", field="registry")
    return found[0]


def _inside(folder: Path, name: str | None, what: str, place: Place) -> Path:
    """A file or folder in a registry's folder; links and dots must not lead out of it."""
    if name is None:
        raise place.error(f"{what!r} is missing")
    path = folder / name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise place.error(
            f"{what!r}: {name!r} leads out of {folder}: files must lie in the registry's folder"
        )
    if not path.exists():
        raise place.error(f"{what!r}: there is no {path}")
    return path


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read: {error}") from error


def _texts(folder: Path, names: tuple[str, ...], place: Place) -> dict[str, str]:
    """The files of these names, by the last part of their names."""
    texts: dict[str, str] = {}
    for name in names:
        path = _inside(folder, name, "files", place)
        if path.name in texts:
            raise place.error(f"'files': two files are called {path.name!r}")
        texts[path.name] = _text(path)
    return texts
