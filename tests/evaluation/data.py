"""Small data sets made by hand, where the right answer can be read off."""

import numpy as np

from dartboard.types import Chunk, Dataset


def unit(vectors):
    vectors = np.asarray(vectors, dtype=np.float64)
    return (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float32)


def clustered(queries=12, clusters=6, per_cluster=8, dim=32, copies=0, seed=0):
    """Each query asks for one chunk of each of two clusters; ``copies`` near-copies of every chunk."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.standard_normal((clusters, dim)))
    chunks = []
    for c in range(clusters):
        for i in range(per_cluster):
            vector = centres[c] + 0.6 * unit(rng.standard_normal(dim))
            name = f"c{c}-{i}"
            for copy in range(copies + 1):
                near = unit(unit(vector) + (0.1 * unit(rng.standard_normal(dim)) if copy else 0.0))
                metadata = {"cluster": c, "base_id": name}
                chunks.append(
                    Chunk(f"{name}.{copy}" if copy else name, f"passage {name} {copy}", near, metadata)
                )
    by_id = {chunk.id: chunk for chunk in chunks}
    qrels, facets, kernels, asked = {}, {}, {}, []
    for q in range(queries):
        first, second = rng.choice(clusters, 2, replace=False)
        wanted = [f"c{first}-{rng.integers(per_cluster)}", f"c{second}-{rng.integers(per_cluster)}"]
        query_id = f"q{q:02}"
        qrels[query_id] = {wanted[0]: 2, wanted[1]: 1, f"c{first}-7": 0}
        facets[query_id] = {"first": [wanted[0]], "second": [wanted[1]]}
        kernels[query_id] = wanted
        asked.append(sum(by_id[name].embedding for name in wanted) + 0.3 * unit(rng.standard_normal(dim)))
    return Dataset(
        name="clustered",
        chunks=chunks,
        queries=[f"question {q}" for q in range(queries)],
        query_ids=list(qrels),
        ground_truth={q: [c for c, g in judged.items() if g > 0] for q, judged in qrels.items()},
        metadata={
            "qrels": qrels,
            "facets": facets,
            "kernels": kernels,
            "query_embeddings": unit(asked),
            "type": "synthetic",
        },
    )
