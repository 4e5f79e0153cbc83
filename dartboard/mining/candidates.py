"""Raw candidates: each question with contexts that nobody has labelled yet, in a file.

One JSON object a line. The first says what the file is: corpus, settings, how many cases follow. Each other
line is a case with its contexts. The file is written beside its place and moved there when it is whole; the
same input gives the same bytes.

Where a case has a solution, what that imports from the corpus is added to its targets: whoever is to write
the solution must have met it. Like every target it is believed, and proved or not by the judge.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from dartboard.datasets.mined import STRICT
from dartboard.datasets.records import Place
from dartboard.datasets.safe_yaml import Lines, adapter, problems_of
from dartboard.errors import DatasetError
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool, PoolSettings, build_pool
from dartboard.mining.corpora.base import Corpus
from dartboard.mining.dataset_writer import write_atomically
from dartboard.mining.import_mining import imports_kernel

FORMAT = "dartboard raw candidates"

Heard = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, config=STRICT)
class Head:
    """The first line of the file; ``registry`` is a hash of the cases as they were read."""

    format: Literal["dartboard raw candidates"] = "dartboard raw candidates"
    version: Literal[2] = 2
    corpus: str
    fingerprint: str
    registry: str
    settings: dict[str, Any]
    cases: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class RawCandidates:
    """What a file of raw candidates holds; pools are in the order of the cases."""

    head: Head
    pools: tuple[ContextPool, ...]

    @property
    def cases(self) -> list[Case]:
        """The cases of the pools."""
        return [pool.case for pool in self.pools]


def extract(
    cases: Iterable[Case],
    corpus: Corpus,
    path: str | Path,
    *,
    settings: PoolSettings | None = None,
    listen: Heard | None = None,
) -> RawCandidates:
    """Draw the contexts of all cases, and write them down for who goes on from there.

    Args:
        cases: the questions, each with its targets.
        corpus: where contexts are drawn from.
        path: the file, one JSON object a line.
        settings: how many contexts of each origin.
        listen: hears how many pools of how many are there.

    Returns:
        What the file holds.

    Raises:
        DatasetError: a target that the corpus has not, or a case that occurs twice.
    """
    chosen, listed = settings or PoolSettings(), list(cases)
    if repeated := {case.id for case in listed if sum(one.id == case.id for one in listed) > 1}:
        raise DatasetError(f"{path}: case {min(repeated)!r} occurs twice", field="id")
    pools: list[ContextPool] = []
    for case in listed:
        pools.append(build_pool(with_imports(case, corpus), corpus, chosen))
        if listen is not None:
            listen(len(pools), len(listed))
    raw = RawCandidates(head_of(listed, corpus, chosen), tuple(pools))
    lines = [adapter(Head).dump_json(raw.head), *map(adapter(ContextPool).dump_json, pools)]
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, "".join(line.decode() + "\n" for line in lines))
    return raw


def head_of(cases: list[Case], corpus: Corpus, settings: PoolSettings) -> Head:
    """What the candidates of these cases are known by."""
    registry = hashlib.sha256(b"".join(adapter(Case).dump_json(case) for case in cases)).hexdigest()
    return Head(
        corpus=corpus.name,
        fingerprint=corpus.fingerprint,
        registry=registry,
        settings=asdict(settings),
        cases=len(cases),
    )


def read_candidates(path: Path | str) -> RawCandidates:
    """The file, checked: its format, every field, and that no line is missing.

    Raises:
        DatasetError: it is missing, or not a file of raw candidates; the message names the line.
    """
    file = Path(path)
    if not file.is_file():
        raise DatasetError(f"there is no {file}: make it with tools/extract_retrieval_data.py")
    first, *rest = file.read_bytes().split(b"\n")
    if f'"format":"{FORMAT}"'.encode() not in first:
        raise Place(file, 1).error(f"not a file of raw candidates: its first line must say {FORMAT!r}")
    head: Head = _read(file, 1, first, Head)
    pools = [_read(file, number, line, ContextPool) for number, line in enumerate(rest, start=2) if line]
    if len(pools) != head.cases:
        raise Place(file, len(pools) + 2).error(
            f"{head.cases} cases were written and {len(pools)} are there: extract again"
        )
    return RawCandidates(head, tuple(pools))


def with_imports(case: Case, corpus: Corpus) -> Case:
    """The case with what its solution imports among its targets."""
    if case.solution is None:
        return case
    return replace(case, targets=tuple(dict.fromkeys([*case.targets, *imports_kernel(case, corpus)])))


def _read(file: Path, number: int, line: bytes, model: Any) -> Any:
    try:
        return adapter(model).validate_json(line)
    except ValidationError as error:
        _, told = next(problems_of(error, model, Lines()))
        raise Place(file, number).error(told) from None
