"""A model without weights: the vector of a text is a hash of it."""

import hashlib
import time

import numpy as np

from dartboard.embeddings import BatchModel, ModelDescription, TaskType


class HashingModel(BatchModel):
    def __init__(self, seed: int = 0, pause: float = 0.0) -> None:
        self.seed = seed
        self.pause = pause
        self.batches: list[list[str]] = []

    @property
    def description(self) -> ModelDescription:
        return ModelDescription(name="hashing", dim=8)

    @property
    def fingerprint(self) -> str:
        return f"hashing:{self.seed}"

    def _encode_batch(self, texts: list[str], task: TaskType) -> np.ndarray:
        self.batches.append(texts)
        time.sleep(self.pause)  # timing: a slow model, on every machine
        digests = [hashlib.sha256(f"{self.seed} {task} {text}".encode()).digest() for text in texts]
        return np.array([np.frombuffer(digest, "<u4") for digest in digests]) / np.float32(2**32)
