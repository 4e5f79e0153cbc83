"""The rooms stay apart: imports go downward, and importing the package stays light."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import dartboard

ROOT = Path(dartboard.__file__).parent

# Lower rooms first; a room may import its own level and what is below.
LEVELS = [
    {
        "version",
        "errors",
        "types",
        "utils",
        "data",
        "deadline",
        "blas",
        "http_client",
        "file_lock",
        "lazy",
        "plugins",
        "statistics",
        "plain_text",
    },
    {"near_duplicates"},
    {"selection", "embeddings", "ingest", "lexical"},
    {"cluster", "llm"},
    {"config", "vocab", "calibration", "pair_scores", "stores"},
    {"retrievers", "search_options"},
    {"relevance", "copies"},
    {"core", "datasets"},
    {"engine", "duplicates", "evaluation", "mining", "answering", "context"},
    {"explain"},
    {"testing"},
    {"api", "web", "integrations"},
    {"cli", "__main__"},
]
FORBIDDEN = {
    ("selection", "embeddings"),
    ("embeddings", "selection"),
    ("stores", "embeddings"),
    ("stores", "selection"),
    ("types", "utils"),
    ("errors", "types"),
}
UPWARD = {("types", "explain"), ("selection", "explain")}
"""A result draws itself when somebody looks at it: an import within a method."""
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}


def room_of(path: Path) -> str:
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


@cache
def import_nodes(path: Path) -> list[ast.Import | ast.ImportFrom]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in import_nodes(path):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names]
                if node.module == "dartboard"
                else [node.module]
            )
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("dartboard.")}
    return rooms


MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def test_imports_go_downward():
    wrong = []
    for path in MODULES:
        room = room_of(path)
        assert room in LEVEL_OF, f"{room} is a new room: say in LEVELS where it stands"
        for other in imported_rooms(path) - {room}:
            if other not in LEVEL_OF:  # a name such as dartboard.__version__, taken from the front
                assert hasattr(dartboard, other), path
            elif (room, other) in UPWARD:
                continue
            elif LEVEL_OF[other] > LEVEL_OF[room]:
                wrong.append(f"{path}: {room} must not import {other}, which stands above it")
            elif (room, other) in FORBIDDEN:
                wrong.append(f"{path}: {room} must know nothing of {other}")
    assert not wrong, "\n".join(wrong)


def test_no_relative_imports():
    for path in MODULES:
        for node in import_nodes(path):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path} imports relatively"


def test_import_loads_nothing_heavy():
    heavy = (
        "numpy",
        "torch",
        "onnxruntime",
        "tokenizers",
        "faiss",
        "tantivy",
        "psycopg",
        "pymilvus",
        "fastapi",
        "numba",
        "scipy",
        "httpx",
        "rich",
        "transformers",
    )
    front = "import sys, dartboard; "
    names = "from dartboard import *; dartboard.vocab, dartboard.core, dartboard.near_duplicates; "
    for code, loaded in ((front, []), (front + names, ["numpy"])):
        code += f"print([m for m in {heavy!r} if m in sys.modules])"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == repr(loaded)


def test_a_search_loads_no_readers_of_documents():
    code = "import sys, dartboard.engine.engine, dartboard.stores.sqlite; "
    code += "print([m for m in ('dartboard.ingest', 'numpy.random') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_public_names():
    assert dartboard.__all__ == sorted(dartboard.__all__, key=lambda n: (n != "MMR", not n[0].isupper(), n))
    assert len([name for name in dartboard.__all__ if not name.startswith("__")]) <= 12
    assert all(hasattr(dartboard, name) for name in dartboard.__all__)
    assert {*dartboard.__all__, "selection", "vocab"} <= set(dir(dartboard))
    assert not hasattr(dartboard, "nope") and not hasattr(dartboard, "_nope")
