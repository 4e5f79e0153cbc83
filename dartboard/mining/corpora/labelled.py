"""The passages of a data set as documents, under their ids, and the data set itself by name or by place."""

from pathlib import Path

from dartboard.datasets.catalogue import entry_at, load_text
from dartboard.datasets.text_dataset import TextDataset, embedded_text
from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError
from dartboard.mining.corpora.searching import SearchingCorpus
from dartboard.mining.documents import Document


class LabelledCorpus(SearchingCorpus):
    """Title and text of each passage; passages that have neither are left out."""

    def __init__(self, name: str, *, split: str | None = None, model: EmbeddingModel | None = None) -> None:
        data = read_dataset(name, split=split)
        documents = [
            Document(passage.id, text, {"title": passage.title} if passage.title else {})
            for passage in data.passages
            if (text := embedded_text(passage.text, passage.title)).strip()
        ]
        super().__init__(data.name, documents, model=model)


def read_dataset(name: str, *, split: str | None = None) -> TextDataset:
    """A data set by its file or folder, or by its name in the folder of data sets; nothing is fetched."""
    path = Path(name)
    if not path.exists():
        return load_text(name, split=split, fetch=False)
    if (entry := entry_at(path)) is not None:
        return entry.load(split)
    raise DatasetError(
        f"{path} is no data set of a known format: expected a BEIR folder (corpus.jsonl, queries.jsonl, "
        "qrels/test.tsv), a retrieval_dataset.yaml, or a file of RGB, HotpotQA or MuSiQue"
    )
