"""Does a trained projection of the token vectors beat the untrained ones in late interaction? Write JSON.

    python -m benchmarks.late_projection --folder FOLDER      # for the token vectors, 1.3 GB

A ColBERT model is an encoder and a linear map of its token states. Here the encoder is the default model,
with its weights fixed, and only the map is trained: 384 → 128 (from the principal components) and 384 → 384
(from the identity). Pairs are the questions of HotpotQA and MuSiQue with their supporting paragraphs;
negatives are the other paragraphs of the batch, and one near the question for each pair. Every fifth question
is left out; nDCG@10 on those chooses the learning rate and the epoch, and may choose the map before training.

Measured once, at the end, on sets that are no part of this: SciFact and RGB fact, the nearest 100 reordered.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import ROOT, data_folder
from dartboard.datasets import load_text
from dartboard.datasets.text_dataset import embedded_text
from dartboard.embeddings import CachedModel, default_model
from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.vectors import Vectors
from dartboard.evaluation.significance import compare_columns
from dartboard.types import FloatArray

RESULTS = ROOT / "benchmarks" / "results" / "late_projection.json"
TRAINED, TESTED = ("hotpotqa_dev200", "musique_train100"), ("scifact", "rgb_en_fact")
POOL, CUT = 100, 10
LEFT_OUT = 5
"""Every fifth question of the training sets chooses; the others train."""
RATES, EPOCHS, BATCH, TEMPERATURE = (1e-3, 1e-4), 8, 16, 0.05
UNTRAINED = "untrained, 384"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--sizes", nargs="+", choices=("128", "384"), default=("128", "384"))
    parser.add_argument("--tested", nargs="+", choices=TESTED, default=TESTED)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    started = time.process_time()
    sets = [TokenSet(name, options.folder) for name in TRAINED]
    components = principal_components(sets[0].passages[0], 128)
    starts = {"128": components, "384": np.eye(384, dtype=np.float32)}
    maps: dict[str, Vectors] = {UNTRAINED: starts["384"], "principal components, 128": components}
    choices = {}
    for size in options.sizes:
        maps[f"trained, {size}"], choices[size] = train(sets, starts[size])
    tested = {name: measured(TokenSet(name, options.folder), maps) for name in options.tested}
    pairs = sum(len(one.wanted[query]) for one in sets for query in one.questions(training=True))
    found = {
        "model": default_model().fingerprint,
        "pairs": pairs,
        "pool": POOL,
        "choices": choices,
        "tested": tested,
        "cpu_seconds": round(time.process_time() - started),
    }
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


class TokenSet:
    """A data set with the token vectors of its texts, which are kept on disk."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._folder = name, folder
        self._text = load_text(name, data_folder(name), fetch=False)
        listed = list(self._text.passages)
        self._passage_texts = [embedded_text(one.text, one.title) for one in listed]
        place = {one.id: at for at, one in enumerate(listed)}
        judged = [self._text.qrels.get(query, {}) for query in self._text.queries]
        self.wanted = [{place[one]: grade for one, grade in row.items() if grade > 0} for row in judged]

    @cached_property
    def queries(self) -> tuple[Vectors, FloatArray]:
        """Token vectors of all questions, and where each begins and ends."""
        return self._states("queries", list(self._text.queries.values()), TaskType.RETRIEVAL_QUERY)

    @cached_property
    def passages(self) -> tuple[Vectors, FloatArray]:
        """Token vectors of all passages, and where each begins and ends."""
        return self._states("passages", self._passage_texts, TaskType.RETRIEVAL_DOCUMENT)

    @cached_property
    def pools(self) -> FloatArray:
        """The nearest passages of each question by the model's sentence vectors, ``(questions, 100)``."""
        model = CachedModel(default_model())
        asked = model.encode_queries(list(self._text.queries.values()))
        similarity = asked @ model.encode_documents(self._passage_texts).T
        return np.argsort(-similarity, axis=1, kind="stable")[:, :POOL]

    def questions(self, *, training: bool) -> list[int]:
        """Those that train, or those that choose."""
        return [at for at, wanted in enumerate(self.wanted) if wanted and (at % LEFT_OUT > 0) == training]

    def _states(self, kind: str, texts: list[str], task: TaskType) -> tuple[Vectors, FloatArray]:
        path = self._folder / f"{self.name}-{kind}.npy"
        lengths = path.with_name(f"{self.name}-{kind}-lengths.npy")
        if not path.exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            made = [one.astype(np.float16) for one in default_model().token_vectors(texts, task=task)]
            np.save(lengths, np.array([len(one) for one in made]))
            np.save(path, np.concatenate(made))
        ends = np.concatenate([[0], np.cumsum(np.load(lengths))])
        return np.load(path), ends


def principal_components(states: Vectors, count: int) -> Vectors:
    """``(count, d)``: the directions in which the token vectors have the most length."""
    some = states[:: max(1, len(states) // 100_000)].astype(np.float32)
    _, directions = np.linalg.eigh(some.T @ some)
    return np.ascontiguousarray(directions[:, ::-1][:, :count].T, dtype=np.float32)


def train(sets: Sequence[TokenSet], start: Vectors) -> tuple[Vectors, dict[str, Any]]:
    """The map that is best on the questions left out, and how it was chosen."""
    import torch

    best = start
    chosen: dict[str, Any] = {"rate": None, "epoch": 0, "ndcg@10": validated(sets, start)}
    chosen["untrained"] = chosen["ndcg@10"]
    for rate in RATES:
        torch.manual_seed(0)
        weights = torch.nn.Parameter(torch.from_numpy(start.copy()))
        optimizer = torch.optim.Adam([weights], lr=rate)
        for epoch in range(1, EPOCHS + 1):
            for batch in _batches(sets, seed=epoch):
                optimizer.zero_grad()
                _loss(batch, weights).backward()
                optimizer.step()
            now = weights.detach().numpy().copy()
            score = validated(sets, now)
            print(f"{start.shape[0]}: rate {rate}, epoch {epoch}: {score:.4f}", flush=True)
            if score > chosen["ndcg@10"]:
                best = now
                chosen |= {"rate": rate, "epoch": epoch, "ndcg@10": score}
    return best, chosen


def validated(sets: Sequence[TokenSet], weights: Vectors) -> float:
    """nDCG@10 on the questions that choose."""
    columns = [reordered(one, weights, one.questions(training=False)) for one in sets]
    return round(float(np.concatenate(columns).mean()), 5)


@dataclass(frozen=True)
class _Batch:
    """Token vectors of questions and of passages; the first passages are the right ones, in order."""

    questions: list[Vectors]
    passages: list[Vectors]
    masked: FloatArray
    """``(questions, passages)``: other right passages of a question, which are no negatives."""


def _batches(sets: Sequence[TokenSet], *, seed: int) -> list[_Batch]:
    """All pairs in random order, each batch from one set."""
    random = np.random.default_rng(seed)
    made = []
    for one in sets:
        pairs = [(query, right) for query in one.questions(training=True) for right in one.wanted[query]]
        order = random.permutation(len(pairs))
        for rows in np.split(order, range(BATCH, len(order), BATCH)):
            queries, rights = zip(*(pairs[row] for row in rows), strict=True)
            near = [int(random.choice([p for p in one.pools[q] if p not in one.wanted[q]])) for q in queries]
            shown = [*rights, *near]
            masked = np.array([[p in one.wanted[q] for p in shown] for q in queries])
            masked[np.arange(len(rows)), np.arange(len(rows))] = False
            made.append(
                _Batch(
                    [_part(one.queries, query) for query in queries],
                    [_part(one.passages, passage) for passage in shown],
                    masked,
                )
            )
    return [made[at] for at in random.permutation(len(made))]


def _part(states: tuple[Vectors, FloatArray], at: int) -> Vectors:
    vectors, ends = states
    return vectors[ends[at] : ends[at + 1]].astype(np.float32)


def _loss(batch: _Batch, weights: Any) -> Any:
    """Cross-entropy of the right passage by the mean of the largest cosines."""
    import torch
    from torch.nn.functional import cross_entropy, normalize

    passages = [
        normalize(part @ weights.T, dim=1)
        for part in torch.split(
            torch.from_numpy(np.concatenate(batch.passages)), [len(part) for part in batch.passages]
        )
    ]
    scores = []
    for question in batch.questions:
        asked = normalize(torch.from_numpy(question) @ weights.T, dim=1)
        scores.append(torch.stack([(asked @ one.T).max(dim=1).values.mean() for one in passages]))
    logits = torch.stack(scores) / TEMPERATURE
    logits = logits.masked_fill(torch.from_numpy(batch.masked), -torch.inf)
    return cross_entropy(logits, torch.arange(len(batch.questions)))


def reordered(tokens: TokenSet, weights: Vectors, questions: Sequence[int]) -> FloatArray:
    """nDCG@10 of each question's nearest 100, reordered by late interaction."""
    states, ends = tokens.passages
    projected: dict[int, Vectors] = {}
    found = []
    for query in questions:
        asked = _unit(_part(tokens.queries, query) @ weights.T)
        pool = tokens.pools[query]
        for passage in pool:
            if int(passage) not in projected:
                part = states[ends[passage] : ends[passage + 1]].astype(np.float32)
                projected[int(passage)] = _unit(part @ weights.T)
        scores = [float((asked @ projected[int(one)].T).max(axis=1).mean()) for one in pool]
        order = pool[np.argsort(-np.array(scores), kind="stable")]
        found.append(ndcg([tokens.wanted[query].get(int(one), 0) for one in order], tokens.wanted[query]))
    return np.array(found)


def _unit(rows: Vectors) -> Vectors:
    unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def ndcg(gains: Sequence[int], wanted: Mapping[int, int]) -> float:
    """nDCG@10."""
    discounts = 1 / np.log2(np.arange(2, CUT + 2))
    ideal = sorted(wanted.values(), reverse=True)[:CUT]
    return float(np.dot(gains[:CUT], discounts[: len(gains[:CUT])]) / np.dot(ideal, discounts[: len(ideal)]))


def measured(tokens: TokenSet, maps: Mapping[str, Vectors]) -> dict[str, Any]:
    """nDCG@10 of the dense order and of each map; the difference to the untrained one with its interval."""
    asked = [at for at, wanted in enumerate(tokens.wanted) if wanted]
    dense = [
        ndcg([tokens.wanted[q].get(int(one), 0) for one in tokens.pools[q]], tokens.wanted[q]) for q in asked
    ]
    columns = {"dense": np.array(dense)} | {name: reordered(tokens, one, asked) for name, one in maps.items()}
    rows = {}
    for name, column in columns.items():
        compared = compare_columns(column[:, None], columns[UNTRAINED][:, None])[0]
        values = (float(column.mean()), compared.difference, compared.low, compared.high)
        rows[name] = {
            key: round(value, 4) for key, value in zip(("mean", "more", "low", "high"), values, strict=True)
        }
    return {"queries": len(asked), "rows": rows}


def table(found: Mapping[str, Any]) -> str:
    """Markdown: nDCG@10, and the difference to the untrained token vectors."""
    names, tested = {"scifact": "SciFact", "rgb_en_fact": "RGB fact"}, found["tested"]
    heads = [f"{names[one]} ({cell['queries']} questions) | difference" for one, cell in tested.items()]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (2 * len(heads) + 1) + "|"]
    for name in next(iter(tested.values()))["rows"]:
        cells = []
        for cell in tested.values():
            row = cell["rows"][name]
            more = f"{row['more']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f})"
            cells.append(f"{row['mean']:.3f} | {'' if name == UNTRAINED else more}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
