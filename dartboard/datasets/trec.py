"""Judgements and rankings in TREC formats, which retrieval tools exchange.

======================  ==========================================================
qrels, TREC             ``query 0 passage grade``; also MS MARCO's, with tabs
qrels, BEIR             ``query-id  corpus-id  score``, tabs, with a header
subtopics (ndeval)      ``query facet passage grade``
run                     ``query Q0 passage rank score tag``
======================  ==========================================================
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from dartboard.datasets.records import Place, lines
from dartboard.datasets.text_dataset import Facets, Qrels
from dartboard.errors import ConfigError, DatasetError

MOST_GRADE = 100
"""Gains are two to the power of a grade."""

_DIGITS = 9
"""Of a rank or a grade."""

Ranking = Sequence[str] | Mapping[str, float]
"""Ids best first, or ids with scores."""


def read_qrels(path: str | Path) -> Qrels:
    """Read judgements in TREC's four columns or BEIR's three.

    Args:
        path: The file.

    Returns:
        Query id to passage id to grade.

    Raises:
        DatasetError: the file is missing, a line is malformed, or a pair has two grades.
    """
    qrels: Qrels = {}
    for place, parts in _columns(Path(path)):
        if len(parts) not in (3, 4):
            raise place.error(
                f"expected 'query 0 passage grade' or 'query passage grade', got {len(parts)} columns"
            )
        query_id, passage_id, grade = parts[0], parts[-2], parts[-1]
        if place.line == 1 and len(parts) == 3 and math.isnan(_number(grade)):
            continue  # BEIR's header
        known = qrels.setdefault(query_id, {}).setdefault(passage_id, _integer(place, "grade", grade))
        if abs(known) > MOST_GRADE:
            raise place.error(f"grade must be at most {MOST_GRADE}, got {grade}")
        if known != int(grade):
            raise place.error(
                f"query {query_id!r} and passage {passage_id!r} are judged {grade}, but {known} before"
            )
    return qrels


def first_judgement(path: str | Path, query_id: str) -> Place:
    """The first line of a valid file of judgements that judges a query."""
    return next(place for place, parts in _columns(Path(path)) if parts[0] == query_id)


def write_qrels(qrels: Qrels, path: str | Path, *, layout: Literal["trec", "beir"] = "trec") -> None:
    """Write judgements, one per line, in the given order.

    Args:
        qrels: The grade of each passage id, by query id.
        path: The file.
        layout: ``trec`` (four columns) or ``beir`` (tabs and a header).
    """
    judged = [(query, passage, grade) for query, row in qrels.items() for passage, grade in row.items()]
    if layout == "beir":
        written = ["query-id\tcorpus-id\tscore"]
        written += [f"{_tab_safe(query)}\t{_tab_safe(passage)}\t{grade}" for query, passage, grade in judged]
    elif layout == "trec":
        written = [f"{_word(query)} 0 {_word(passage)} {grade}" for query, passage, grade in judged]
    else:
        raise ConfigError(f"layout must be 'trec' or 'beir', got {layout!r}")
    _write(path, written)


def read_subtopics(path: str | Path) -> Facets:
    """Read which passages cover which facet of a query; grades of 0 and below are skipped.

    Args:
        path: The file: query id, facet, passage id, grade.

    Returns:
        Query id to facet to passage ids.

    Raises:
        DatasetError: the file is missing or a line is malformed.
    """
    facets: Facets = {}
    for place, parts in _columns(Path(path)):
        if len(parts) != 4:
            raise place.error(f"expected 'query facet passage grade', got {len(parts)} columns")
        query_id, facet, passage_id, grade = parts
        if _integer(place, "grade", grade) > 0:
            covering = facets.setdefault(query_id, {}).setdefault(facet, [])
            if passage_id not in covering:
                covering.append(passage_id)
    return facets


def write_subtopics(facets: Facets, path: str | Path) -> None:
    """Write facets, one passage per line, each with grade 1.

    Args:
        facets: Query id to facet to passage ids.
        path: The file to write.
    """
    _write(
        path,
        (
            f"{_word(query)} {_word(facet)} {_word(passage)} 1"
            for query, by_facet in facets.items()
            for facet, covering in by_facet.items()
            for passage in covering
        ),
    )


def read_run(path: str | Path) -> dict[str, dict[str, float]]:
    """``{query_id: {passage_id: score}}``, sorted like trec_eval: by decreasing score, then decreasing id.

    As in trec_eval, the ranks in the file are ignored.

    Args:
        path: The file, in TREC's six columns.

    Returns:
        Query id to passage id to score.

    Raises:
        DatasetError: the file is missing or a line is malformed.
    """
    scores: dict[str, dict[str, float]] = {}
    for place, parts in _columns(Path(path)):
        if len(parts) != 6:
            raise place.error(f"expected 'query Q0 passage rank score tag', got {len(parts)} columns")
        query_id, _, passage_id, rank, score, _ = parts
        _integer(place, "rank", rank)
        row = scores.setdefault(query_id, {})
        if passage_id in row:
            raise place.error(f"passage {passage_id!r} is ranked twice for query {query_id!r}")
        row[passage_id] = _number(score)
        if not math.isfinite(row[passage_id]):
            raise place.error(f"score must be a finite number, got {score!r}")
    return {query_id: dict(_by_score(row)) for query_id, row in scores.items()}


def write_run(run: Mapping[str, Ranking], path: str | Path, *, tag: str = "dartboard") -> None:
    """Write rankings: ids with scores, or lists of ids, best first.

    White space in an id ends a column of the format, so it is written as ``%20``.

    A list has no scores, and tools sort by score. So the first of n passages gets score n and the last gets
    1; every tool then reads the same order.

    Args:
        run: Query id to passage ids, best first, or to passage ids with scores.
        path: The file to write.
        tag: The name of the run, in the last column.
    """
    written, name = [], _spaceless(tag)
    for query_id, ranking in run.items():
        if isinstance(ranking, Mapping):
            scored = _by_score(ranking)
        else:
            scored = [(one, float(len(ranking) - place)) for place, one in enumerate(ranking)]
        if len({passage_id for passage_id, _ in scored}) < len(scored):
            raise DatasetError(f"run of query {query_id!r} ranks a passage twice")
        for rank, (passage_id, score) in enumerate(scored, start=1):
            if not math.isfinite(score):
                raise DatasetError(f"run of query {query_id!r}: passage {passage_id!r} has score {score}")
            written.append(
                f"{_spaceless(query_id)} Q0 {_spaceless(passage_id)} {rank} {float(score)!r} {name}"
            )
    _write(path, written)


def _by_score(scores: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(scores.items(), key=lambda item: (item[1], item[0]), reverse=True)


def _columns(path: Path) -> Iterator[tuple[Place, list[str]]]:
    """Split at tabs if they separate all columns of a line, otherwise at any white space."""
    for place, line in lines(path):
        by_tab = [part.strip() for part in line.split("\t")]
        yield place, by_tab if len(by_tab) >= 3 else line.split()


def _integer(place: Place, name: str, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS):
        shown = text if len(text) <= 2 * _DIGITS else f"{text[:_DIGITS]}…"
        raise place.error(f"{name} must be a whole number of at most {_DIGITS} digits, got {shown!r}")
    return int(text)


def _number(text: str) -> float:
    """The number; NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _word(text: str) -> str:
    """A value of a column that ends at white space."""
    if text.split() != [text]:
        raise DatasetError(f"{text!r} has white space or is empty: TREC files cannot hold it")
    return text


def _spaceless(text: str) -> str:
    if not text:
        raise DatasetError("an id is empty: TREC files cannot hold it")
    return re.sub(r"\s", "%20", text)


def _tab_safe(text: str) -> str:
    if not text or any(end in text for end in "\t\r\n"):
        raise DatasetError(f"{text!r} has a tab or a line end or is empty: BEIR's qrels cannot hold it")
    return text


def _write(path: str | Path, written: Iterable[str]) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w", encoding="utf-8", newline="\n") as stream:
        stream.writelines(f"{line}\n" for line in written)
