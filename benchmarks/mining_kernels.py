"""Part (a): is the exact kernel found, with a judge that knows it and tells only what is missing?

The simulated judge says YES if all supporting paragraphs are among the contexts. Otherwise it names the first
that is not there, in one of three wordings, never by its id:

- ``title``: the title of the paragraph, without what stands in brackets;
- ``common words``: five words of the paragraph that are not in its title and that at least nine other
  paragraphs have, too;
- ``sub-question``: the question that the paragraph answers, in the words of MuSiQue's annotators.

It flips a share of its verdicts at random, by seed, case, contexts and attempt (sticky errors: whatever the
attempt); a false NO asks for a
paragraph drawn at random, so that it misleads.
"""

import json
import random
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dartboard.mining.agreement import wilson
from dartboard.mining.benchmark_registry import labelled_cases
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool, build_pool
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import LabelledCorpus, read_dataset
from dartboard.mining.judges.base import Verdict
from dartboard.mining.kernels import ExpansionKernel, find_kernel

SEEDS = (0, 1, 2)
_WORD = re.compile(r"[^\W\d_]{4,}")

Wording = Callable[[str, Document], str]


@dataclass(frozen=True, slots=True)
class Setting:
    """A row of the table; ``votes`` None is the finder's own choice, ``sticky`` errors repeat themselves."""

    wording: str
    flips: float = 0.0
    votes: int | None = None
    target: bool = True
    sticky: bool = False


SETTINGS = (
    Setting("title"),
    Setting("title", votes=1),
    Setting("title", target=False),
    Setting("common words"),
    Setting("sub-question"),
    Setting("title", flips=0.05),
    Setting("title", flips=0.05, votes=1),
    Setting("title", flips=0.05, sticky=True),
    Setting("common words", flips=0.05),
    Setting("sub-question", flips=0.05),
    Setting("title", flips=0.1),
    Setting("title", flips=0.2),
)


class KnowingJudge:
    """Knows the kernels by case id."""

    name = "simulated"
    prompt_version = "own words"

    def __init__(
        self,
        kernels: Mapping[str, Sequence[str]],
        documents: Mapping[str, Document],
        wording: Wording,
        *,
        flips: float,
        seed: int,
        sticky: bool = False,
    ) -> None:
        self._kernels, self._documents, self._wording = kernels, documents, wording
        self._names = sorted(documents)
        self._flips, self._seed, self._sticky = flips, seed, sticky
        self.flipped = 0

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """One verdict, the same for the same question and attempt."""
        there = {context.fqn for context in contexts}
        lacking = [name for name in self._kernels[case.id] if name not in there]
        draw = random.Random(repr((self._seed, case.id, sorted(there), 0 if self._sticky else attempt)))
        wrong = draw.random() < self._flips
        self.flipped += wrong
        if wrong == bool(lacking):
            return Verdict(label="YES", judge=self.name)
        wanted = lacking[0] if lacking else draw.choice(self._names)
        missing = self._wording(case.id, self._documents[wanted])
        return Verdict(label="NO", missing=missing, judge=self.name)


def measure_kernels(folder: Path) -> dict[str, Any]:
    """All settings on one data set; random flips with three seeds."""
    data = read_dataset(str(folder))
    corpus = LabelledCorpus(str(folder))
    documents = {document.fqn: document for document in corpus}
    cases = [case for case in labelled_cases(data) if case.id in data.kernels]
    words = wordings(folder, documents)
    pools = {target: [_pool(case, corpus, target) for case in cases] for target in (True, False)}
    rows = []
    for setting in SETTINGS:
        if setting.wording not in words:
            continue
        started = time.perf_counter()
        found: list[ExpansionKernel] = []
        shares = []
        for seed in SEEDS if setting.flips else SEEDS[:1]:
            judge = KnowingJudge(
                data.kernels,
                documents,
                words[setting.wording],
                flips=setting.flips,
                seed=seed,
                sticky=setting.sticky,
            )
            kernels = [
                find_kernel(pool.case, pool, corpus, judge, votes=setting.votes)
                for pool in pools[setting.target]
            ]
            shares.append(statistics.mean(is_exact(kernel, data.kernels) for kernel in kernels))
            found += kernels
        rows.append(_row(setting, found, shares, data.kernels, time.perf_counter() - started))
    return {
        "cases": len(cases),
        "paragraphs": len(corpus),
        "sizes": dict(sorted(Counter(len(set(data.kernels[case.id])) for case in cases).items())),
        "rows": rows,
    }


def is_exact(kernel: ExpansionKernel, truth: Mapping[str, Sequence[str]]) -> bool:
    """Whether a kernel is the set of supporting paragraphs."""
    return set(kernel.contexts) == set(truth[kernel.case])


def wordings(folder: Path, documents: Mapping[str, Document]) -> dict[str, Wording]:
    """The ways in which the judge says what is missing; sub-questions where the data has them."""
    counts = Counter(word for one in documents.values() for word in set(_words(one.text)))

    def title(_: str, document: Document) -> str:
        return re.sub(r"\(.*?\)", "", document.metadata.get("title", "")).strip() or document.text[:40]

    def common_words(_: str, document: Document) -> str:
        named = set(_words(document.metadata.get("title", "")))
        common = [word for word in _words(document.text) if counts[word] >= 10 and word not in named]
        rarest = sorted(dict.fromkeys(common), key=lambda word: (counts[word], word))[:5]
        return " ".join(sorted(rarest)) or title("", document)

    found: dict[str, Wording] = {"title": title, "common words": common_words}
    asked = _sub_questions(folder)
    if asked:
        found["sub-question"] = lambda case_id, document: asked.get(
            (case_id, document.fqn), title("", document)
        )
    return found


def _pool(case: Case, corpus: LabelledCorpus, target: bool) -> ContextPool:
    """The pool of a case that knows its first supporting paragraph, or none."""
    return build_pool(replace(case, targets=case.targets[:1] if target else ()), corpus)


def _sub_questions(folder: Path) -> dict[tuple[str, str], str]:
    """``{(query, passage): question}`` with answers of earlier steps filled in."""
    positives = {row["_id"]: row["positive"] for row in _lines(folder / "pools.jsonl")}
    found = {}
    for row in _lines(folder / "queries.jsonl"):
        steps = row["metadata"].get("decomposition", [])
        for step, passage in zip(steps, positives[row["_id"]], strict=False):
            question = step["question"].replace(" >> ", " ")
            for number, earlier in enumerate(steps, start=1):
                question = question.replace(f"#{number}", earlier["answer"])
            found[row["_id"], passage] = question
    return found


def _row(
    setting: Setting,
    found: Sequence[ExpansionKernel],
    shares: Sequence[float],
    truth: Mapping[str, Sequence[str]],
    seconds: float,
) -> dict[str, Any]:
    exact = sum(is_exact(kernel, truth) for kernel in found)
    calls = sorted(kernel.calls for kernel in found)
    cases = len(found) // len(shares)
    low, high = wilson(exact / len(found) * cases, cases)
    return {
        "wording": setting.wording,
        "flips": setting.flips,
        "votes": setting.votes,
        "target": setting.target,
        "sticky": setting.sticky,
        "exact": exact / len(found),
        "low": low,
        "high": high,
        "by_seed": list(shares),
        "calls": {
            "mean": statistics.mean(calls),
            "median": statistics.median(calls),
            "p95": calls[round(0.95 * (len(calls) - 1))],
            "most": calls[-1],
        },
        "status": dict(sorted(Counter(kernel.status for kernel in found).items())),
        "false_alternatives": sum(len(kernel.alternatives) for kernel in found) / len(found),
        "misses": sorted({kernel.case for kernel in found if not is_exact(kernel, truth)}),
        "seconds_a_case": seconds / len(found),
    }


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
