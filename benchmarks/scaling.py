"""What a cluster costs where it cannot pay: one machine, against the same work in one process.

python benchmarks/scaling.py         # writes benchmarks/results/scaling.json; about a minute

The cluster has no processor here that one process would not have. The difference is the price of the journey:
that of a piece of work, of a list of passages, of joining and looking around.
"""

import hashlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds the package

from dartboard.cluster import ClusterEncoder, connect, recipe_of  # noqa: E402
from dartboard.embeddings import OnnxModel, default_model  # noqa: E402
from dartboard.engine import Engine, index_paths  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "scaling.json"
LIST = 64
FILES = 256


def main() -> None:
    texts = passages()
    model = default_model()
    report: dict[str, Any] = {"cores": os.cpu_count(), "threads": model.threads}
    report["same_bits_with_threads"] = bits_by_threads(texts[:LIST])
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        docs.mkdir()
        for number, text in enumerate(texts):
            (docs / f"{number:04d}.txt").write_text(text)
        started = time.perf_counter()
        with connect("local") as ray:
            joined = time.perf_counter()
            encoder = ClusterEncoder(ray, recipe_of("default"))
            report["join_seconds"] = joined - started
            report["look_seconds"] = time.perf_counter() - joined
            piece = ray.remote(os.getpid)
            report["piece_ms"] = 1000 * median(lambda: ray.get(piece.remote()), 200)
            here, there = in_turn(
                lambda: model.encode_documents(texts[:LIST]), lambda: encoder.begin(texts[:LIST]).result(), 5
            )
            report["list"] = {"passages": LIST, "here_ms": 1000 * here, "there_ms": 1000 * there}
            alone, together = in_turn(
                lambda: index(Path(folder) / "alone", docs, None),
                lambda: index(Path(folder) / "together", docs, encoder),
                2,
            )
        report["index"] = {"passages": FILES, "here_seconds": alone, "there_seconds": together}
        report["index"]["same_bytes"] = vectors(Path(folder) / "alone") == vectors(Path(folder) / "together")
    RESULTS.write_text(json.dumps(rounded(report), indent=1) + "\n")
    print(RESULTS.read_text())


def passages() -> list[str]:
    """Texts of some 30 to 110 words."""
    return [
        f"Rule {number}. "
        + " ".join(f"Broker {number * step % 97} keeps offset {step}." for step in range(6, 12 + number % 11))
        for number in range(FILES)
    ]


def bits_by_threads(texts: list[str]) -> bool:
    """Whether the default model gives the same bits with one to four threads."""
    found = {
        hashlib.sha256(OnnxModel.bundled(threads=threads).encode_documents(texts).tobytes()).digest()
        for threads in (1, 2, 3, 4)
    }
    return len(found) == 1


def index(store: Path, docs: Path, encoder: ClusterEncoder | None) -> None:
    store.unlink(missing_ok=True)
    with Engine.open(str(store)) as engine:
        index_paths(engine, docs, encoder=encoder)


def vectors(store: Path) -> list[tuple[str, bytes]]:
    with Engine.open(str(store), read_only=True) as engine:
        return [
            (record.id, record.embedding.tobytes())
            for batch in engine.collection.iterate()
            for record in batch
        ]


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median(work: Callable[[], object], times: int) -> float:
    return statistics.median(seconds(work) for _ in range(times))


def in_turn(here: Callable[[], object], there: Callable[[], object], times: int) -> tuple[float, float]:
    """The least seconds of each, in turn: whatever else the machine does disturbs both."""
    pairs = [(seconds(here), seconds(there)) for _ in range(times)]
    return min(one for one, _ in pairs), min(two for _, two in pairs)


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return round(value, 2) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
