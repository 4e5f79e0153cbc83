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
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from dartboard.datasets.safe_yaml import Fields, read_fields
from dartboard.errors import DatasetError
from dartboard.mining.adapters import api_questions, fix_errors, labelled, multiple_choice
from dartboard.mining.adapters.reading import CASE_KEYS, read_case
from dartboard.mining.cases import Case
from dartboard.mining.inside import Inside

Adapter = Callable[[Fields, Inside], Iterator[Case]]

ADAPTERS: dict[str, Adapter] = {
    "api_questions": api_questions.read,
    "fix_errors": fix_errors.read,
    "labelled": labelled.read,
    "multiple_choice": multiple_choice.read,
}

NAMES = ("registry.yaml", "registry.yml", "registry.json")


def load_cases(path: Path | str) -> list[Case]:
    """All cases of a registry, in its order."""
    file = _registry_file(Path(path))
    root = read_fields(file, "'benchmarks' or 'cases'")
    root.only({"benchmarks", "cases"})
    inside = Inside.of(file.parent)
    cases: dict[str, Case] = {}
    for case in _read(root, inside):
        if case.id in cases:
            raise DatasetError(f"{case.place}: id {case.id!r} occurs twice, first at {cases[case.id].place}")
        cases[case.id] = case
    if not cases:
        raise root.error("there are no cases: give 'benchmarks', 'cases' or both")
    return list(cases.values())


def _read(root: Fields, inside: Inside) -> Iterator[Case]:
    for benchmark in root.mappings("benchmarks"):
        kind = benchmark.string("kind")
        if kind not in ADAPTERS:
            raise benchmark.error(
                f"unknown kind {kind!r}: choose one of {', '.join(ADAPTERS)}", benchmark.entries["kind"]
            )
        yield from ADAPTERS[kind](benchmark, inside)
    for entry in root.mappings("cases"):
        entry.only({*CASE_KEYS, "solution", "unfixed", "check"})
        yield read_case(entry, inside, kind="question")


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
