"""Asks an installation without extras for everything that needs one; run by its own Python, not by pytest.

Prints, for each door, what was said: a line of JSON of names and messages.
"""

import contextlib
import importlib
import io
import json
import sys
from pathlib import Path

from dartboard.cli import main

PDF, HTML = b"%PDF-1.4\n", b"<html><body><p>A page.</p></body></html>"


def told(*arguments):
    """What a command says when it ends, on both streams, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return f"{code}: {err.getvalue()}{out.getvalue()}"


def called(module, name, *arguments):
    """What importing and calling something raises."""
    try:
        getattr(importlib.import_module(module), name)(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
        return f"{type(error).__name__}: {error}"
    return "nothing was raised"


def doors(folder: Path):
    """Each with the extra that it has to name."""
    (folder / "a.pdf").write_bytes(PDF)
    (folder / "a.html").write_bytes(HTML)
    (folder / "note.txt").write_text("A note.")
    (folder / "config.json").write_text("{}")  # of a model
    store = ["--store", str(folder / "i.dartboard")]
    yield "docs", "a PDF", told("index", str(folder / "a.pdf"), *store)
    yield "docs", "a page", told("index", str(folder / "a.html"), *store)
    yield "serve", "serve", told("serve")
    yield "eval", "eval", told("eval", "--dataset", "synthetic_clustered", "--out", str(folder / "r"))
    yield "postgres", "postgresql://", told("stats", "--store", "postgresql://me@127.0.0.1/none")
    yield "milvus", "milvus://", told("stats", "--store", "milvus://127.0.0.1:1")
    yield "milvus", "milvus:///", told("stats", "--store", f"milvus://{folder}/lite.db")
    yield "torch", "splade", told("search", "a", "--retriever", f"splade:{folder}", *store)
    yield "torch", "cross-encoder", called("dartboard.embeddings", "CrossEncoder", str(folder))
    yield "vocab", "vocabulary", called("dartboard.vocab", "build_from_clusters", None, 100)
    yield "serve", "the application", called("dartboard.api", "create_app")
    yield "mcp", "mcp", told("mcp", *store)
    yield "ray", "--ray", told("index", str(folder / "note.txt"), "--ray", "auto", *store)
    for name in ("langchain", "llama_index", "haystack"):
        yield name.replace("_", "-"), name, called(f"dartboard.integrations.{name}", "DartboardRetriever")


if __name__ == "__main__":
    print(json.dumps([list(door) for door in doors(Path(sys.argv[1]))]))
