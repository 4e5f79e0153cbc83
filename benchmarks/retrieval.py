"""Measure stores, retrievers and the whole path of a search beside what people use today; write JSON.

    python benchmarks/retrieval.py [--parts NAME …] [--out FILE] [--quick]

Parts, each in its own process, with one thread for BLAS and OpenMP:

    engines   100k × 384 vectors: recall@100 and queries a second, beside pgvector, Chroma and plain FAISS
    indexes   which FAISS index when: the table that the store's own choice follows
    growth    10,000 to a million chunks in one file, 100,000 in PostgreSQL: load, peak memory, search
    search    a whole search over 100k chunks but for the model, beside LangChain and LlamaIndex
    cold      dartboard search in a new process on 5,000 chunks: seconds from start to end
    models    BM25, dense, ColBERT and hybrid: bytes, speed, exact identifiers, paraphrases
    indexing  throughput of indexing against the model's own limit, and the specification's table

``--quick`` makes everything ten times smaller, to see that it runs. Peers that are not installed are left
out and named: pip install chromadb langchain-community llama-index-vector-stores-faiss.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
PARTS = ("engines", "indexes", "growth", "search", "cold", "models", "indexing")
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "retrieval.json")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(options.out.read_text()) if options.out.exists() else {}
    for part in options.parts:
        print(f"== {part}", flush=True)
        found[part] = run(part, quick=options.quick)
        options.out.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps(found[part], indent=1), flush=True)


def run(part: str, *, quick: bool) -> Any:
    """One part in a process of its own, so that peak memory and threads are its own too."""
    code = (
        f"import json, sys; sys.path.insert(0, {str(ROOT)!r}); "
        f"from retrieval_parts.{part} import measure; print(json.dumps(measure(quick={quick})))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ONE_THREAD,
    )
    if done.returncode:
        sys.exit(f"{part} failed: see above")
    return json.loads(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
