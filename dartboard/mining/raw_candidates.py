"""Raw candidates in a file: what ``dartboard mine extract`` writes and ``dartboard mine judge`` reads.

One JSON object a line. The first says what the file is: format and version, corpus and its fingerprint,
settings, how many cases follow. Each other line is a case with its contexts, nothing of it labelled. The
file is written beside its place and moved there when it is whole; the same input gives the same bytes.
Fields are read by :class:`~dartboard.datasets.records.Record`, as those of all data sets; pydantic is no
dependency of the library.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from dartboard.datasets.records import Place, Record, json_lines
from dartboard.datasets.safe_yaml import odd_character, refused_id
from dartboard.errors import DatasetError
from dartboard.mining.cases import Case, Check, Kind
from dartboard.mining.context_pool import ORIGINS, TARGET, ContextPool, PooledContext
from dartboard.mining.corpora import resolved
from dartboard.mining.corpora.base import Corpus, Document
from dartboard.mining.dataset_writer import write_atomically

FORMAT = "dartboard raw candidates"
VERSION = 1

CORPUS, SEEN_FROM, THIS_FILE = "corpus", "corpus_seen_from", "this file"
"""Settings that say where the corpus is; a relative path in it begins at the folder of the file."""


@dataclass(frozen=True, slots=True)
class RawCandidates:
    """What a file of raw candidates holds; pools are in the order of the cases.

    ``corpus_spec`` names the corpus from wherever one is; None where the file does not say it.
    """

    pools: list[ContextPool]
    corpus_name: str
    fingerprint: str
    settings: dict[str, Any]
    corpus_spec: str | None = None

    @property
    def cases(self) -> list[Case]:
        """The cases of the pools."""
        return [pool.case for pool in self.pools]


def write_candidates(
    path: Path | str, pools: Iterable[ContextPool], *, corpus: Corpus, settings: Mapping[str, Any]
) -> RawCandidates:
    """Write the pools of a corpus, and give what :func:`read_candidates` would.

    Args:
        path: the file; it is replaced when the new one is whole.
        pools: the cases with their contexts.
        corpus: where these are from.
        settings: how they were made, as plain JSON.

    Raises:
        DatasetError: settings or metadata are no plain JSON, or a case occurs twice.
    """
    listed, target = list(pools), Path(path)
    head = {
        "format": FORMAT,
        "version": VERSION,
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint,
        "settings": dict(settings),
        "cases": len(listed),
    }
    lines = [_line(row) for row in (head, *map(_pool_row, listed))]
    _check_ids(listed, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, "".join(lines))
    return RawCandidates(
        listed,
        corpus.name,
        corpus.fingerprint,
        json.loads(lines[0])["settings"],  # in the order of the file
        _corpus_spec(settings, target.parent),
    )


def read_candidates(path: Path | str) -> RawCandidates:
    """The file, checked: its format, every field, and that no line is missing."""
    file = Path(path)
    if not file.is_file():
        raise DatasetError(f"there is no {file}: make it with dartboard mine extract")
    records = json_lines(file)
    try:
        head = next(records, None)
    except DatasetError:
        head = None
    if head is None or head.fields.get("format") != FORMAT:
        raise Place(file, 1).error(
            f"not a file of raw candidates: its first line must say {FORMAT!r}. "
            "Make one with dartboard mine extract"
        )
    if (version := head.fields.get("version")) != VERSION:
        raise head.place.error(f"format version {version!r}, but this dartboard reads {VERSION}: update it")
    pools = [_pool(record) for record in records]
    if len(pools) != head.fields.get("cases"):
        raise Place(file, len(pools) + 2).error(
            f"{head.fields.get('cases')} cases were written and {len(pools)} are there: extract again"
        )
    _check_ids(pools, file)
    return RawCandidates(
        pools,
        head.text("corpus"),
        head.text("fingerprint"),
        head.mapping("settings"),
        _corpus_spec(head.mapping("settings"), file.parent),
    )


def _check_ids(pools: Iterable[ContextPool], file: Path) -> None:
    seen: set[str] = set()
    for pool in pools:
        if pool.case.id in seen:
            raise DatasetError(f"{file}: case {pool.case.id!r} occurs twice")
        seen.add(pool.case.id)


def _corpus_spec(settings: Mapping[str, Any], folder: Path) -> str | None:
    spec = settings.get(CORPUS)
    if not isinstance(spec, str):
        return None
    return resolved(folder, spec) if settings.get(SEEN_FROM) == THIS_FILE else spec


def _line(row: Mapping[str, Any]) -> str:
    try:
        return json.dumps(row, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise DatasetError(f"settings and metadata must be plain JSON: {error}") from error


def _pool_row(pool: ContextPool) -> dict[str, Any]:
    case = {name: value for name, value in asdict(pool.case).items() if value not in (None, (), "")}
    contexts = [
        {
            "fqn": one.document.fqn,
            "text": one.document.text,
            "metadata": dict(one.document.metadata),
            "origins": one.origins,
        }
        for one in pool.contexts
    ]
    return {"case": case, "target": pool.target, "contexts": contexts}


def _pool(record: Record) -> ContextPool:
    case = _case(Record(record.place, record.mapping("case")))
    contexts = [_context(record.place, one) for one in record.list("contexts")]
    target = record.fields.get("target")
    if target is not None and target not in {one.document.fqn for one in contexts if TARGET in one.origins}:
        raise record.place.error(f"target {target!r} is not among the contexts")
    return ContextPool(case, target, contexts)


def _case(row: Record) -> Case:
    kind = row.text("kind", default="question")
    if kind not in get_args(Kind):
        raise row.place.error(f"unknown kind {kind!r}: one of {', '.join(get_args(Kind))}")
    identity = row.identifier("id")
    if (odd := odd_character(identity)) is not None:
        raise row.place.error(refused_id(identity, odd))
    return Case(
        id=identity,
        question=row.text("question"),
        targets=_strings(row, "targets"),
        answers=_strings(row, "answers"),
        facets=tuple(
            _strings(Record(row.place, {"facets": facet}), "facets")
            for facet in row.list("facets", required=False)
        ),
        kind=kind,  # type: ignore[arg-type]  # one of its values, as just checked
        choices=_strings(row, "choices"),
        unfixed=_optional(row, "unfixed"),
        solution=_optional(row, "solution"),
        check=_check(Record(row.place, row.mapping("check"))) if row.fields.get("check") else None,
        place=row.text("place", default=""),
    )


def _check(row: Record) -> Check:
    files = row.mapping("files")
    timeout = row.fields.get("timeout")
    if not all(isinstance(text, str) for text in files.values()):
        raise row.place.error("the files of a check must be texts by name")
    if not isinstance(timeout, int | float):
        raise row.place.error("'timeout' of a check must be a number of seconds")
    return Check(
        command=_strings(row, "command"), files=files, timeout=timeout, candidate=row.text("candidate")
    )


def _context(place: Place, fields: Any) -> PooledContext:
    if not isinstance(fields, dict):
        raise place.error(f"each of 'contexts' must be an object, got {type(fields).__name__}")
    row = Record(place, fields)
    origins = _strings(row, "origins")
    if unknown := set(origins) - set(ORIGINS):
        raise place.error(f"unknown origin {min(unknown)!r}: one of {', '.join(ORIGINS)}")
    return PooledContext(Document(row.identifier("fqn"), row.text("text"), row.mapping("metadata")), origins)


def _strings(row: Record, name: str) -> tuple[str, ...]:
    values = row.list(name, required=False)
    if not all(isinstance(value, str) for value in values):
        raise row.place.error(f"each of {name!r} must be a string")
    return tuple(values)


def _optional(row: Record, name: str) -> str | None:
    return row.text(name) if row.fields.get(name) is not None else None
