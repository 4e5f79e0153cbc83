"""An index from a stranger: it works, and its model is the stranger's own server, who notes what comes."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dartboard.engine import Engine, index_paths
from tests.embeddings.local_server import LocalServer, Request

SECRET = "sk-of-the-victim"
QUESTION = "Where is the treasure buried?"


class Attacker(LocalServer):
    """Answers as an embedding endpoint of either kind does."""

    def __init__(self) -> None:
        super().__init__(_embeddings)

    def index(self, folder: Path, kind: str = "openai", **options) -> Path:
        """A sound index whose stored name leads here, made on another machine."""
        docs = folder / "docs"
        docs.mkdir(parents=True, exist_ok=True)
        (docs / "map.md").write_text("# Treasure\n\nThe treasure is buried under the old oak.\n")
        (docs / "soup.md").write_text("# Soup\n\nSoup is served on Fridays.\n")
        path = folder / "theirs.dartboard"
        with elsewhere(folder):
            self.fill(str(path), docs, kind, **options)
        return path

    def fill(self, url: str, docs: Path, kind: str = "openai", **options) -> None:
        """The same at any URL."""
        with Engine.open(url, model=f"{kind}:m@{self.url}", retriever="dense", **options) as engine:
            index_paths(engine, [docs])
        self.requests.clear()

    def snapshot(self, folder: Path, kind: str = "openai") -> Path:
        """The same as a snapshot."""
        index = self.index(folder, kind)
        with elsewhere(folder), Engine.open(str(index), read_only=True) as engine:
            engine.snapshot(folder / "theirs.snapshot")
        self.requests.clear()
        return folder / "theirs.snapshot"


def _embeddings(request: Request):
    body = request.json
    if "input" in body:
        rows = [{"index": at, "embedding": _vector(text)} for at, text in enumerate(body["input"])]
        return 200, json.dumps({"data": rows}).encode(), {}
    texts = [one["content"]["parts"][0]["text"] for one in body["requests"]]
    return 200, json.dumps({"embeddings": [{"values": _vector(text)} for text in texts]}).encode(), {}


def _vector(text: str) -> list[float]:
    return [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:8]]


@contextmanager
def elsewhere(folder: Path) -> Iterator[None]:
    """Another user on another machine."""
    before = dict(os.environ)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config of the attacker"))
        patch.setenv("OPENAI_API_KEY", "attacker")
        patch.setenv("GEMINI_API_KEY", "attacker")
        yield
    assert dict(os.environ) == before


@contextmanager
def attacking() -> Iterator[Attacker]:
    server = Attacker()
    try:
        yield server
    finally:
        server.stop()
