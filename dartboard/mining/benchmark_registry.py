"""Cases from a registry: a YAML or JSON file, or a folder that has one.

::

    benchmarks:
      - {kind: api_questions, file: questions.yaml}
      - {kind: fix_errors, folder: fix_errors, files: [checking.py]}
      - {kind: multiple_choice, file: choices.yaml, prefix: quiz}
      - {kind: labelled, dataset: hotpotqa, limit: 50}
    cases:
      - {id: "mine:01", question: "…", target: "package.module.Name", answer: "…"}

A case's id is its own behind the prefix of its benchmark, by default the kind: ``fix_errors:01``. Every
complaint names file and line; unknown keys, aliases, ids that occur twice and paths that lead out of the
registry's folder are refused.

To read another kind of benchmark, write a function like :func:`_api_questions` and name it in ``ADAPTERS``.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from string import ascii_uppercase

from dartboard.datasets.catalogue import load_text
from dartboard.datasets.safe_yaml import Fields, read_fields
from dartboard.datasets.text_dataset import TextDataset, unique
from dartboard.errors import DatasetError
from dartboard.mining.cases import (
    CANDIDATE,
    CASE_KEYS,
    TIMEOUT,
    Case,
    Check,
    named_texts,
    prefix_of,
    read_case,
)
from dartboard.mining.corpora.memory_corpus import read_dataset
from dartboard.mining.safe_paths import SafeFolder

NAMES = ("registry.yaml", "registry.yml", "registry.json")


def load_cases(path: Path | str) -> list[Case]:
    """All cases of a registry, in its order.

    Args:
        path: the registry's file, or a folder that has one.

    Raises:
        DatasetError: what is wrong in a file, with its line.
    """
    file = _registry_file(Path(path))
    root = read_fields(file, "'benchmarks' or 'cases'")
    root.only({"benchmarks", "cases"})
    safe_folder = SafeFolder.of(file.parent)
    cases: dict[str, Case] = {}
    for case in _read(root, safe_folder):
        if case.id in cases:
            raise DatasetError(f"{case.place}: id {case.id!r} occurs twice, first at {cases[case.id].place}")
        cases[case.id] = case
    if not cases:
        raise root.error("there are no cases: give 'benchmarks', 'cases' or both")
    return list(cases.values())


def _read(root: Fields, safe_folder: SafeFolder) -> Iterator[Case]:
    for benchmark in root.mappings("benchmarks"):
        kind = benchmark.string("kind")
        if kind not in ADAPTERS:
            raise benchmark.error(
                f"unknown kind {kind!r}: choose one of {', '.join(ADAPTERS)}", benchmark.entries["kind"]
            )
        yield from ADAPTERS[kind](benchmark, safe_folder)
    for entry in root.mappings("cases"):
        entry.only({*CASE_KEYS, "solution", "unfixed", "check"})
        yield read_case(entry, safe_folder, kind="question")


def _registry_file(path: Path) -> Path:
    if path.is_file():
        return path
    if not path.exists():
        raise DatasetError(f"there is no {path}: name a registry (YAML or JSON) or a folder that has one")
    found = [path / name for name in NAMES if (path / name).is_file()]
    if len(found) != 1:
        problem = "no registry" if not found else f"several registries ({', '.join(f.name for f in found)})"
        raise DatasetError(f"{path} has {problem}: expected one of {', '.join(NAMES)}")
    return found[0]


def _api_questions(entry: Fields, safe_folder: SafeFolder) -> Iterator[Case]:
    """Questions about an interface, each with an answer and the document that has it.

    ::

        cases:
          - id: "01"
            question: "Which field of an agent …?"
            target: "package.module.Name"
            answers: ["output_key"]
    """
    entry.only({"kind", "file", "prefix"})
    for found in _case_entries(entry, safe_folder):
        found.only(CASE_KEYS)
        case = read_case(found, safe_folder, kind="api_question", prefix=prefix_of(entry, "api_questions"))
        for what, given in (("target", case.targets), ("answer", case.answers or case.facets)):
            if not given:
                raise found.error(f"{what!r} is missing: an API question needs at least one")
        yield case


def _case_entries(entry: Fields, safe_folder: SafeFolder) -> list[Fields]:
    """The mappings under ``cases`` of the file that an entry names."""
    try:
        path = safe_folder.file(entry.string("file"))
    except DatasetError as error:
        raise entry.error(f"'file': {error}") from None
    root = read_fields(path, "'cases'")
    root.only({"cases"})
    if not (found := root.mappings("cases")):
        raise root.error("'cases' is empty")
    return found


def _multiple_choice(entry: Fields, safe_folder: SafeFolder) -> Iterator[Case]:
    """Questions with choices, of which one is right: it is the answer.

    ::

        cases:
          - id: "01"
            question: "Which service keeps sessions in memory?"
            choices: ["DatabaseSessionService", "InMemorySessionService"]
            correct: "B"                     # the letter, or the choice itself
            target: "package.module.Name"
    """
    entry.only({"kind", "file", "prefix"})
    for found in _case_entries(entry, safe_folder):
        found.only({"id", "question", "target", "targets", "choices", "correct"})
        case = read_case(
            found, safe_folder, kind="multiple_choice", prefix=prefix_of(entry, "multiple_choice")
        )
        choices = found.strings("choices")
        if not 2 <= len(set(choices)) == len(choices) <= len(ascii_uppercase):
            raise found.error("'choices' must be 2 to 26 different texts")
        yield replace(case, choices=tuple(choices), answers=(_correct(found, choices),))


def _correct(entry: Fields, choices: list[str]) -> str:
    said = entry.string("correct")
    if said in choices:
        return said
    letters = ascii_uppercase[: len(choices)]
    if len(said) == 1 and said.upper() in letters:
        return choices[letters.index(said.upper())]
    raise entry.error(
        f"'correct' must be one of the choices or a letter A … {letters[-1]}, got {said!r}",
        entry.entries["correct"],
    )


_SOLUTION_FILES = ("unfixed.py", "fixed.py")


def _fix_errors(entry: Fields, safe_folder: SafeFolder) -> Iterator[Case]:
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
    entry.only({"kind", "folder", "prefix", "files", "timeout"})
    prefix = prefix_of(entry, "fix_errors")
    shared = named_texts(entry, "files", safe_folder)
    timeout = entry.number("timeout", TIMEOUT, least=0.1, most=3600)
    try:
        folder = safe_folder.below(entry.string("folder"))
    except DatasetError as error:
        raise entry.error(f"'folder': {error}") from None
    names = sorted(
        path.name for path in folder.folder.iterdir() if path.is_dir() and path.name[0] not in "._"
    )
    if not names:
        raise entry.error(f"'folder': {folder.folder} has no case: expected a folder for each", entry.node)
    for name in names:
        yield _fix_error(folder.below(name), prefix, shared, timeout)


def _fix_error(safe_folder: SafeFolder, prefix: str, shared: dict[str, str], timeout: float) -> Case:
    unfixed, fixed = (safe_folder.text(name) for name in _SOLUTION_FILES)
    tests = _test_file(safe_folder.folder)
    if unfixed == fixed:
        raise DatasetError(f"{safe_folder.folder}: fixed.py is the same as unfixed.py")
    about = read_fields(safe_folder.file("case.yaml"), "'question' and 'target'")
    about.only(CASE_KEYS - {"id"})
    others = sorted(path.name for path in safe_folder.folder.glob("*.py") if path.name not in _SOLUTION_FILES)
    files = shared | {name: safe_folder.text(name) for name in others}
    if clash := shared.keys() & set(others):
        raise DatasetError(f"{safe_folder.folder}: {min(clash)} is also the name of a file for all cases")
    if CANDIDATE in files:
        raise DatasetError(f"{safe_folder.folder}: {CANDIDATE} is the candidate's name: use another")
    case = read_case(about, safe_folder, kind="fix_error", prefix=prefix, own_id=safe_folder.folder.name)
    check = Check(command=("python", tests), files=files, timeout=timeout)
    return replace(case, unfixed=unfixed, solution=fixed, check=check)


def _test_file(folder: Path) -> str:
    tests = sorted(path.name for path in folder.glob("test_*.py"))
    if len(tests) != 1:
        found = ", ".join(tests) or "none"
        raise DatasetError(f"{folder} must have one test_*.py beside unfixed.py and fixed.py, has {found}")
    return tests[0]


_MOST_CASES = 10_000_000


def _labelled(entry: Fields, safe_folder: SafeFolder) -> Iterator[Case]:
    """The first ``limit`` questions of a data set; ``dataset`` is a path below the registry, or a name."""
    entry.only({"kind", "dataset", "prefix", "split", "limit"})
    name = entry.string("dataset")
    limit = int(entry.number("limit", _MOST_CASES, least=1, most=_MOST_CASES))
    try:
        data = _dataset(name, safe_folder, entry.string("split") if entry.has("split") else None)
    except DatasetError as error:
        raise entry.error(f"'dataset': {error}") from None
    place = safe_folder.shown(entry.path, entry.place.line)
    yield from labelled_cases(data, prefix=prefix_of(entry, data.name), limit=limit, place=place)


def _dataset(name: str, safe_folder: SafeFolder, split: str | None) -> TextDataset:
    """Below the registry, or in the folder of data sets; a path that leads elsewhere is refused."""
    if (safe_folder.folder / name).exists() or ".." in name.split("/"):
        return read_dataset(str(safe_folder.path(name)), split=split)
    return load_text(name, split=split, fetch=False)


def labelled_cases(
    data: TextDataset, *, prefix: str = "", limit: int | None = None, place: str = ""
) -> list[Case]:
    """A case for each of the first questions of a BEIR or QA data set that is not blank.

    Where a set says which passages an answer requires, these are the targets; else all that it calls
    relevant.
    """
    asked = [(query_id, text) for query_id, text in data.queries.items() if text.strip()]
    return [
        Case(
            id=f"{prefix}:{query_id}" if prefix else query_id,
            question=text,
            targets=_targets(data, query_id),
            answers=tuple(unique([answer for answer in data.answers.get(query_id, []) if answer.strip()])),
            place=place or data.name,
        )
        for query_id, text in asked[:limit]
    ]


def _targets(data: TextDataset, query_id: str) -> tuple[str, ...]:
    if kernel := data.kernels.get(query_id):
        return tuple(kernel)
    judged = data.qrels.get(query_id, {})
    return tuple(
        sorted((one for one, grade in judged.items() if grade > 0), key=lambda one: (-judged[one], one))
    )


Adapter = Callable[[Fields, SafeFolder], Iterator[Case]]

ADAPTERS: dict[str, Adapter] = {
    "api_questions": _api_questions,
    "fix_errors": _fix_errors,
    "labelled": _labelled,
    "multiple_choice": _multiple_choice,
}
