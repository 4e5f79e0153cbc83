"""The documentation's code is true: blocks are valid, commands exist, and what pages of ours show runs."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import typer

from dartboard import select
from dartboard.cli.app import app, main
from dartboard.engine import Engine, index_paths
from tests.stores import postgres_server

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ |    (?=dartboard ))(dartboard .*)$", flags=re.MULTILINE)

RUN = (
    "index.md",
    "tutorial.md",
    "how-to/folder.md",
    "how-to/models.md",
    "how-to/vectors.md",
    "how-to/evaluation.md",
    "explanation/mathematics.md",
    "explanation/relevance.md",
    "inspection.md",
)
"""Pages whose Python runs as it stands, block after block."""

RUN_HERE = (
    "how-to/agents.md",
    "how-to/context.md",
    "how-to/duplicates.md",
    "how-to/postgresql.md",
    "how-to/milvus.md",
)
"""Pages whose Python runs in a test below, on a server or a file of the test's own."""

RUN_ELSEWHERE = {
    "answering.md": "answering/test_answering_document.py",
    "api.md": "api/test_docs.py",
    "integrations.md": "integrations/test_page.py",
    "mcp.md": "integrations/test_mcp.py",
    "mining.md": "mining/test_mining_document.py",
    "plugins.md": "test_plugins.py",
    "rerank.md": "api/test_rerank_clients.py",
    "scaling.md": "cluster/test_cluster.py",
}
"""Pages whose Python runs in tests of their rooms."""

PARSED_ONLY = {
    "retrievers.md": ("TwoTowers.from_folders(", "ColbertModel("),  # models that have to be fetched
    "stores.md": (),
}
"""Pages of which some blocks are parsed and no more, by what stands in these; all others of them run."""


def blocks(page):
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_are_valid(page):
    for language, text in blocks(page):
        if language == "python":
            ast.parse(text, page)


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_their_options_exist(page):
    text = (DOCS / page).read_text(encoding="utf-8").replace("\\\n", " ")
    for line in COMMAND.findall(text):
        command, words = typer.main.get_command(app), shlex.split(line, comments=True)[1:]
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        assert not getattr(command, "commands", {}) or not words or words[0].startswith("-"), line
        known = {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}
        given = {word.partition("=")[0] for word in words if re.match(r"--?[a-z]", word)}
        assert given <= known, f"{line}: there is no {', '.join(sorted(given - known))}"


@pytest.mark.parametrize("page", [page for page in RUN if page != "tutorial.md"])
def test_python_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    ran = [exec(compile(text, page, "exec"), namespace) for kind, text in blocks(page) if kind == "python"]
    assert ran


def test_of_every_page_with_python_it_is_known_whether_it_runs():
    known = {*RUN, *RUN_HERE, *RUN_ELSEWHERE, *PARSED_ONLY}
    assert known == {page for page in PAGES if any(kind == "python" for kind, _ in blocks(page))}
    for page, test in RUN_ELSEWHERE.items():
        assert Path(page).name in (Path(__file__).parent / test).read_text(encoding="utf-8")


def python_of(page):
    return [text for kind, text in blocks(page) if kind == "python"]


KEYS = "# Keys\n\nRotate the keys every ninety days, by the command of the runbook.\n"
NOTES = {"nine": [1.0, 0.1, 0.0], "nine again": [1.0, 0.1, 0.001], "rollback": [0.1, 1.0, 0.0]}
QUESTION = [1.0, 0.9, 0.0]
TOLD = ({"nine", "rollback"}, {"nine again", "rollback"})


@pytest.mark.parametrize(("page", "marks"), PARSED_ONLY.items())
def test_all_blocks_but_those_named_run(page, marks, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "keys.md").write_text(KEYS)
    left_out = [text for text in python_of(page) if any(mark in text for mark in marks)]
    assert len(left_out) == len(marks)
    namespace: dict[str, Any] = {}
    for text in python_of(page):
        if text not in left_out:
            exec(compile(text, page, "exec"), namespace)
    assert namespace


def run_on_the_demo(page):
    """The namespace of a page that opens docs.dartboard, which holds the demo's passages."""
    Path("notes.jsonl").write_text((DOCS.parent / "dartboard" / "data" / "demo.jsonl").read_text())
    assert main(["index", "notes.jsonl", "--store", "docs.dartboard", "--id-field", "id"]) == 0
    namespace: dict[str, Any] = {}
    for text in python_of(page):
        exec(compile(text, page, "exec"), namespace)
    namespace["engine"].close()
    return namespace


def test_the_page_on_agents_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_on_the_demo("how-to/agents.md")
    printed = capsys.readouterr().out
    assert "Why is a producer slow? ←" in printed and "was known before" in printed


def test_the_page_on_contexts_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    context = run_on_the_demo("how-to/context.md")["context"]
    printed = capsys.readouterr().out
    assert context.text in printed and f"{context.tokens} of 800" in printed


def test_the_page_on_duplicates_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for name in ("keys", "copy", "third"):
        (tmp_path / "docs" / f"{name}.md").write_text(KEYS)
    assert main(["index", "docs", "--store", "docs.dartboard"]) == 0
    namespace: dict[str, Any] = {}
    for text in python_of("how-to/duplicates.md"):
        exec(compile(text, "duplicates.md", "exec"), namespace)
    assert capsys.readouterr().out.endswith("\n2 0 0\n2 would go\n(2, 0)\n")


def test_the_page_on_vectors_reads_the_hits_of_qdrant():
    """With a client in the shape of qdrant-client's, which is not installed here."""
    points = [
        SimpleNamespace(payload={"text": text}, vector=vector, id=place)
        for place, (text, vector) in enumerate(NOTES.items())
    ]

    def query_points(name, *, query, limit, with_vectors):
        assert (name, query, limit, with_vectors) == ("notes", QUESTION, 100, True)
        return SimpleNamespace(points=points)

    (block,) = (text for text in python_of("how-to/vectors.md") if "query_points" in text)
    namespace: dict[str, Any] = {"select": select}
    exec(compile(block, "vectors.md", "exec"), namespace)
    found = namespace["answer"](SimpleNamespace(query_points=query_points), QUESTION, k=2)
    assert {payload["text"] for payload in found} in TOLD


def test_the_page_on_milvus_runs(tmp_path, monkeypatch):
    from pymilvus import MilvusClient

    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "keys.md").write_text(KEYS)
    ours, theirs = python_of("how-to/milvus.md")
    namespace: dict[str, Any] = {}
    exec(compile(ours, "milvus.md", "exec"), namespace)
    assert [chunk.metadata["kind"] for chunk in namespace["result"].chunks] == ["markdown"]
    client = MilvusClient(str(tmp_path / "notes.db"))
    try:
        client.create_collection("notes", dimension=3, metric_type="COSINE")
        rows = [
            {"id": place, "vector": vector, "text": text}
            for place, (text, vector) in enumerate(NOTES.items())
        ]
        client.insert("notes", rows)
        exec(compile(theirs, "milvus.md", "exec"), namespace)
        assert set(namespace["answer"](client, QUESTION, k=2)) in TOLD
    finally:
        client.close()


def test_the_page_on_postgresql_runs(tmp_path):
    import psycopg
    from pgvector.psycopg import register_vector

    (tmp_path / "keys.md").write_text(KEYS)
    ours, theirs = python_of("how-to/postgresql.md")
    url, namespace = postgres_server.fresh(), {}
    with Engine.open(url, collection="handbook") as engine:
        index_paths(engine, tmp_path)
    shown = "postgresql://dartboard@localhost/team"
    assert shown in ours
    exec(compile(ours.replace(shown, url), "postgresql.md", "exec"), namespace)
    assert len(namespace["result"].chunks) == 1
    others = ours.replace(shown, url).replace("markdown", "pdf")
    exec(compile(others, "postgresql.md", "exec"), namespace)
    assert len(namespace["result"].chunks) == 0
    with psycopg.connect(postgres_server.address()) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("CREATE TEMPORARY TABLE notes (id int, text text, embedding vector(3))")
        for place, (text, vector) in enumerate(NOTES.items()):
            connection.execute("INSERT INTO notes VALUES (%s, %s, %s)", (place, text, vector))
        exec(compile(theirs, "postgresql.md", "exec"), namespace)
        for prepare in (lambda connection: None, register_vector):
            prepare(connection)
            found = namespace["answer"](connection, np.array(QUESTION), k=2)
            assert {text for _, text in found} in TOLD


@pytest.mark.filterwarnings("ignore:Matplotlib")
def test_the_tutorial_does_what_it_says(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    printed, ran = "", 0
    for language, text in blocks("tutorial.md"):
        if named := re.match(r"# (\S+\.py)\n", text):
            Path(named[1]).write_text(text, encoding="utf-8")
        elif language == "console":
            for line in text.splitlines():
                printed, ran = run(line, capsys), ran + 1
        elif language == "text":
            assert told(text, printed), f"the tutorial shows\n{text}\nand the command says\n{printed}"
    assert ran == 8
    assert Path("report/report.html").stat().st_size > 1000


def run(line, capsys):
    """What a command of the page prints."""
    command = shlex.split(line.removeprefix("$ "))
    if command[0] == "python":
        done = subprocess.run([sys.executable, *command[1:]], check=True, capture_output=True, text=True)
        return done.stdout
    assert command[0] == "dartboard" and main(command[1:]) == 0, line
    return capsys.readouterr().out


def told(shown, printed):
    """Whether every line stands in the output; one that ends in … up to there."""
    lines = [line.strip() for line in printed.splitlines()]
    for wanted in filter(None, map(str.strip, shown.splitlines())):
        if wanted.endswith("…"):
            found = any(line.startswith(wanted[:-1].strip()) for line in lines)
        else:
            found = wanted in lines
        if not found:
            return False
    return True


def test_a_wrong_output_would_be_noticed():
    assert told("a b\n\nc …", "a b\nc d e\n")
    assert not told("a", "b\n") and not told("c …", "a c d")


def test_every_benchmark_is_listed():
    page = (DOCS / "benchmarks" / "index.md").read_text(encoding="utf-8")
    sources = {
        path.name: path.read_text(encoding="utf-8") for path in (DOCS.parent / "benchmarks").glob("*.py")
    }
    run = {name for name, text in sources.items() if "__main__" in text and name != "tables.py"}
    assert {name for name in run if f"`{name}`" not in page} == set()
