"""Questions of a BEIR or QA data set as cases: required passages as targets, known answers as answers.

Where a set says which passages an answer requires, these are the targets; else all that it calls relevant.
"""

from collections.abc import Iterator

from dartboard.datasets.catalogue import load_text
from dartboard.datasets.safe_yaml import Fields
from dartboard.datasets.text_dataset import TextDataset, unique
from dartboard.errors import DatasetError
from dartboard.mining.adapters.reading import prefix_of
from dartboard.mining.cases import Case
from dartboard.mining.corpora.labelled import read_dataset
from dartboard.mining.inside import Inside

_MOST = 10_000_000


def read(entry: Fields, inside: Inside) -> Iterator[Case]:
    """The first ``limit`` questions; ``dataset`` is a path below the registry, or a name."""
    entry.only({"kind", "dataset", "prefix", "split", "limit"})
    name = entry.string("dataset")
    limit = int(entry.number("limit", _MOST, least=1, most=_MOST))
    try:
        data = _data(name, inside, entry.string("split") if entry.has("split") else None)
    except DatasetError as error:
        raise entry.error(f"'dataset': {error}") from None
    place = inside.shown(entry.path, entry.place.line)
    yield from cases_of(data, prefix=prefix_of(entry, data.name), limit=limit, place=place)


def _data(name: str, inside: Inside, split: str | None) -> TextDataset:
    """Below the registry, or in the folder of data sets; a path that leads elsewhere is refused."""
    if (inside.folder / name).exists() or ".." in name.split("/"):
        return read_dataset(str(inside.path(name)), split=split)
    return load_text(name, split=split, fetch=False)


def cases_of(data: TextDataset, *, prefix: str = "", limit: int | None = None, place: str = "") -> list[Case]:
    """A case for each of the first questions that is not blank."""
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
