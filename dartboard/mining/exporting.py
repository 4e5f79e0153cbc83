"""A mined data set in the forms that other tools read: a BEIR folder with facets, and TREC qrels.

::

    beir/corpus.jsonl, queries.jsonl, qrels/test.tsv, qrels/subtopics.txt, pools.jsonl
    qrels.txt

They are made from the YAML file as every reader gets it, so that all forms say the same. White space ends a
column of these files: in names it becomes ``%20`` and the like.
"""

import re
import shutil
import tempfile
from pathlib import Path

from dartboard.datasets.beir import write_beir
from dartboard.datasets.mined import load_mined
from dartboard.datasets.text_dataset import Passage, TextDataset
from dartboard.datasets.trec import write_qrels

BEIR, QRELS = "beir", "qrels.txt"

_GAP = re.compile(r"[\s%]")


def export(file: Path, folder: Path) -> None:
    """Write both forms beside a data set; each replaces its predecessor when it is whole."""
    data = without_gaps(load_mined(file))
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as name:
        part = Path(name)
        write_beir(data, part / BEIR)
        write_qrels(data.qrels, part / QRELS)
        (part / QRELS).replace(folder / QRELS)
        if (folder / BEIR).exists():
            (folder / BEIR).rename(part / "old")
        (part / BEIR).rename(folder / BEIR)
        shutil.rmtree(part / "old", ignore_errors=True)


def without_gaps(data: TextDataset) -> TextDataset:
    """The same under names without white space."""

    def many(ids: list[str]) -> list[str]:
        return [escaped(one) for one in ids]

    return TextDataset(
        name=data.name,
        passages=[Passage(escaped(one.id), one.text, one.title, one.metadata) for one in data.passages],
        queries={escaped(query): text for query, text in data.queries.items()},
        qrels={
            escaped(query): {escaped(one): grade for one, grade in judged.items()}
            for query, judged in data.qrels.items()
        },
        facets={
            escaped(query): {facet: many(ids) for facet, ids in by_facet.items()}
            for query, by_facet in data.facets.items()
        },
        kernels={escaped(query): many(ids) for query, ids in data.kernels.items()},
        answers={escaped(query): answers for query, answers in data.answers.items()},
        pools={escaped(query): many(ids) for query, ids in data.pools.items()},
        metadata=data.metadata,
    )


def escaped(name: str) -> str:
    """White space and the sign that stands for it by their bytes, as in addresses."""
    return _GAP.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)
