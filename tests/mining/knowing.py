"""A small corpus of facts, and a judge that knows which of them a question needs."""

import random
from collections.abc import Mapping, Sequence

import numpy as np

from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import MemoryCorpus
from dartboard.mining.judges.base import Verdict

TOWNS = ("Avon", "Brno", "Cork", "Delft", "Essen", "Faro", "Ghent", "Hull", "Izmir", "Jena", "Kiel", "Lodz")


class LetterModel:
    """Vectors by counted letters: quick, and the same everywhere."""

    name = fingerprint = "letters"
    embedding_dim = 26
    sigma = 0.2

    def encode_query(self, text: str) -> np.ndarray:
        """One vector of unit length."""
        counts = np.array([1 + text.lower().count(chr(97 + at)) for at in range(26)], dtype=np.float32)
        return counts / np.linalg.norm(counts)

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """One row a text."""
        return np.stack([self.encode_query(text) for text in texts])


def town_corpus() -> MemoryCorpus:
    """Mayors, rivers and bridges of towns; one fact is there in two spellings."""
    documents = []
    for number, town in enumerate(TOWNS):
        documents += [
            Document(f"{town}.mayor", f"The mayor of {town} is called M{number}."),
            Document(f"{town}.river", f"The river through {town} is named R{number}."),
            Document(f"{town}.bridge", f"An old bridge stands near {town}, of stone."),
        ]
    documents.append(Document("Avon.mayor.copy", "M0 is the mayor of Avon, as everybody knows."))
    return MemoryCorpus("towns", documents, model=LetterModel())


class KnowingJudge:
    """YES if every need has one of its documents; errs on the share ``flips`` of its verdicts.

    ``needs`` has for each case its groups of names, of which one each must be there.
    """

    name = "knowing"

    def __init__(
        self, needs: Mapping[str, Sequence[Sequence[str]]], *, flips: float = 0.0, prompt_version: str = "1"
    ) -> None:
        self.needs, self.flips, self.prompt_version = needs, flips, prompt_version
        self.asked: list[tuple[tuple[str, ...], int]] = []

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """One verdict; the same question and attempt get the same one."""
        names = tuple(one.fqn for one in contexts)
        self.asked.append((names, attempt))
        lacking = [group[0] for group in self.needs[case.id] if not set(group) & set(names)]
        draw = random.Random(repr((case.id, names, attempt)))
        yes = not lacking
        if draw.random() < self.flips:
            yes = not yes
        if yes:
            return Verdict(label="YES", judge=self.name)
        wanted = lacking[0] if lacking else f"{draw.choice(TOWNS)}.bridge"
        town, _, what = wanted.partition(".")
        return Verdict(label="NO", missing=f"the {what} of {town}", judge=self.name)
