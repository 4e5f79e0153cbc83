"""A folder of documents in pieces: ``guide.md`` where that is one piece, else ``guide.md#1`` and so on.

Files are found, read and cut as ``dartboard index`` does it. Names are numbered rather than hashed, so that
people can write them as targets of their cases.
"""

from pathlib import Path

from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError
from dartboard.ingest import ChunkingConfig, Problem, chunk, read_path
from dartboard.ingest import Document as Read
from dartboard.mining.corpora.searching import SearchingCorpus
from dartboard.mining.documents import Document


class FolderCorpus(SearchingCorpus):
    """The documents of a folder. ``problems`` are files that could not be read; the rest is there."""

    def __init__(
        self,
        path: str | Path,
        *,
        chunking: ChunkingConfig | None = None,
        model: EmbeddingModel | None = None,
    ) -> None:
        folder = Path(path)
        if not folder.exists():
            raise DatasetError(f"there is no folder {folder}")
        self.problems: list[Problem] = []
        documents: list[Document] = []
        for found in read_path(folder):
            if isinstance(found, Problem):
                self.problems.append(found)
            else:
                documents.extend(_pieces(found, chunking or ChunkingConfig()))
        if not documents:
            raise DatasetError(f"{folder} holds no document that can be read ({len(self.problems)} problems)")
        super().__init__(folder.resolve().name, documents, model=model)


def _pieces(read: Read, chunking: ChunkingConfig) -> list[Document]:
    whole = f"{read.source}:{read.key}" if read.key else read.source
    pieces = chunk(read, chunking)
    if len(pieces) == 1:
        return [Document(whole, pieces[0].text, pieces[0].metadata)]
    return [
        Document(f"{whole}#{number}", piece.text, piece.metadata)
        for number, piece in enumerate(pieces, start=1)
    ]
