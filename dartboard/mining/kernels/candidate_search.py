"""Search a corpus for what a judge says is missing.

Documents that the words name outright, as an executable check does, come first. Then three rankings (words,
meaning, Dartboard) and the targets that the case believes in, merged by rank, ``1 / (10 + r)`` each. The
pool's remaining contexts come last, so that nothing that was drawn for the case is out of reach.
"""

import re
from collections.abc import Iterable

from dartboard.mining.context_pool import ContextPool
from dartboard.mining.corpora.memory import MemoryCorpus
from dartboard.mining.documents import Corpus, Document
from dartboard.retrievers.fusion import reciprocal_rank_fusion

DEPTH = 20
_DAMPING = 10
_NAME = re.compile(r"[A-Za-z_]\w*(?:\.\w+)+")


class Search:
    """Candidates for a case, best first; the same words give the same candidates."""

    def __init__(self, pool: ContextPool, corpus: Corpus | None = None, *, depth: int = DEPTH) -> None:
        self._pool = pool
        self._corpus = corpus or MemoryCorpus(f"pool of {pool.case.id}", pool.documents)
        self._depth = min(depth, len(self._corpus))
        self._found: dict[str, list[Document]] = {}

    def candidates(self, missing: str, known: Iterable[Document] = ()) -> list[Document]:
        """Documents that may say it, without those that are known, by name or by text."""
        names = {one.fqn for one in known}
        texts = {_squeezed(one) for one in known}
        kept = []
        for document in self._ranked(missing):
            text = _squeezed(document)
            if document.fqn not in names and text not in texts:
                texts.add(text)
                kept.append(document)
        return kept

    def replacements(self, missing: str, known: Iterable[Document]) -> list[Document]:
        """As :meth:`candidates`, and documents of the very text of a known one: these replace it best."""
        names = {one.fqn for one in known}
        return [one for one in self._ranked(missing) if one.fqn not in names]

    def named(self, words: str) -> list[Document]:
        """Documents whose name, or a name that leads to them, stands in the words."""
        found = (self._corpus.get(name) for name in _NAME.findall(words))
        return list({one.fqn: one for one in found if one is not None}.values())

    def _ranked(self, missing: str) -> list[Document]:
        """All candidates; where nothing is said to be missing, those for the question itself."""
        words = missing.strip() or self._pool.case.question.strip()
        if words not in self._found:
            self._found[words] = self._merged(words)
        return self._found[words]

    def _merged(self, words: str) -> list[Document]:
        corpus, depth = self._corpus, self._depth
        believed = [one for one in self._pool.contexts if one.document.fqn in self._pool.targets]
        rankings = [
            [one.document for one in believed],
            corpus.lexical(words, depth),
            corpus.dense(words, depth),
            corpus.dartboard(words, depth),
        ]
        documents = {one.fqn: one for ranking in reversed(rankings) for one in reversed(ranking)}
        names = [[one.fqn for one in ranking] for ranking in rankings]
        fused = reciprocal_rank_fusion(names, [1.0] * len(names), _DAMPING)
        best = [documents[name] for name in sorted(documents, key=lambda name: (-fused[name], name))]
        return list({one.fqn: one for one in [*self.named(words), *best, *self._pool.documents]}.values())


def _squeezed(document: Document) -> str:
    return " ".join(document.text.split())
