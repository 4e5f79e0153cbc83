"""Broken code, the same code mended, and a test that tells them apart.

::

    fix_errors/
      01/
        case.yaml       question, target(s); optional answer(s)
        unfixed.py      fails the test
        fixed.py        passes it
        test_01.py      run beside the candidate, which is called solution.py

The test runs by Python alone in an empty folder with the candidate, the case's other ``.py`` files and the
``files`` that the registry adds to every case; exit code 0 means solved.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dartboard.datasets.safe_yaml import Fields, read_fields
from dartboard.errors import DatasetError
from dartboard.mining.adapters.reading import CASE_KEYS, named_texts, one_or_many, prefix_of, read_facets
from dartboard.mining.cases import CANDIDATE, TIMEOUT, Case, Check
from dartboard.mining.inside import Inside

KIND = "fix_errors"
_ROLES = ("unfixed.py", "fixed.py")


def read(entry: Fields, inside: Inside) -> Iterator[Case]:
    """The cases of the folders below the one that the entry names, by rising name."""
    entry.only({"kind", "folder", "prefix", "files", "timeout"})
    shared = named_texts(entry, "files", inside)
    timeout = entry.number("timeout", TIMEOUT, least=0.1, most=3600)
    try:
        folder = inside.below(entry.string("folder"))
    except DatasetError as error:
        raise entry.error(f"'folder': {error}") from None
    names = sorted(
        path.name for path in folder.folder.iterdir() if path.is_dir() and path.name[0] not in "._"
    )
    if not names:
        raise entry.error(f"'folder': {folder.folder} has no case: expected a folder for each", entry.node)
    for name in names:
        case = _case(folder.below(name), shared)
        yield replace(
            case,
            id=f"{prefix_of(entry, KIND)}:{name}",
            check=replace(case.check, timeout=timeout) if case.check else None,
        )


def _case(inside: Inside, shared: dict[str, str]) -> Case:
    unfixed, fixed = (inside.text(name) for name in _ROLES)
    tests = _tests(inside.folder)
    if unfixed == fixed:
        raise DatasetError(f"{inside.folder}: fixed.py is the same as unfixed.py")
    about = read_fields(inside.file("case.yaml"), "'question' and 'target'")
    about.only(CASE_KEYS - {"id"})
    others = sorted(path.name for path in inside.folder.glob("*.py") if path.name not in _ROLES)
    files = shared | {name: inside.text(name) for name in others}
    if clash := shared.keys() & set(others):
        raise DatasetError(f"{inside.folder}: {min(clash)} is also the name of a file for all cases")
    if CANDIDATE in files:
        raise DatasetError(f"{inside.folder}: {CANDIDATE} is the candidate's name: use another")
    return Case(
        id=inside.folder.name,
        question=about.string("question").strip(),
        targets=one_or_many(about, "target", "targets"),
        answers=one_or_many(about, "answer", "answers"),
        facets=read_facets(about),
        kind="fix_error",
        unfixed=unfixed,
        solution=fixed,
        check=Check(command=("python", tests), files=files),
        place=inside.shown(about.path, about.place.line),
    )


def _tests(folder: Path) -> str:
    tests = sorted(path.name for path in folder.glob("test_*.py"))
    if len(tests) != 1:
        found = ", ".join(tests) or "none"
        raise DatasetError(f"{folder} must have one test_*.py beside unfixed.py and fixed.py, has {found}")
    return tests[0]
