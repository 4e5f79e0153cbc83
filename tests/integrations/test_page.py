"""Every block of the page on integrations runs, in order, and what it says of extras is so."""

import os
import re
import tomllib
from pathlib import Path

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from dartboard.integrations import models, rerank
from dartboard.selection.kernel import SMALLEST_POOL
from tests.tea import QUERY, TEXTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text()


def test_the_blocks_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) >= 12
    for block in blocks:
        exec(compile(block, "docs/integrations.md", "exec"), namespace)
    printed = capsys.readouterr().out
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, flags=re.DOTALL)
    assert printed.startswith(shown), "the page shows another answer than its example gives"
    for astray in ("cups", "Cups", "coffee", "Coffee", "water"):
        assert astray not in printed, (
            f"a pick of the page's examples has nothing to do with the question: {astray}"
        )
    filtered = [line for line in printed.splitlines() if line.startswith("['notes/")]
    assert len(filtered) == 2 and not any("notes/countries.txt" in line for line in filtered)
    assert "\nnotes/countries.txt" in printed


def test_the_extra_brings_what_the_compressor_line_imports():
    readme = (ROOT / "README.md").read_text()
    assert "ContextualCompressionRetriever(" in readme and "from langchain_classic" in PAGE
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert any(package.startswith("langchain-classic") for package in extras["langchain"])


def test_the_line_of_the_readme_embeds_no_document(monkeypatch):
    from langchain_core.documents import Document
    from langchain_core.vectorstores import InMemoryVectorStore

    from dartboard.integrations.langchain import DartboardEmbeddings

    readme = (ROOT / "README.md").read_text()
    (compression,) = re.findall(r"`(ContextualCompressionRetriever\(.*?\))`", readme)
    namespace: dict[str, object] = {}
    exec("from langchain_classic.retrievers import ContextualCompressionRetriever", namespace)
    exec("from dartboard.integrations.langchain import DartboardCompressor", namespace)
    store = InMemoryVectorStore(DartboardEmbeddings())
    store.add_documents([Document(page_content=text) for text in TEXTS.values()])
    namespace |= {"store": store, "yours": store.as_retriever(search_kwargs={"k": 10})}
    monkeypatch.setattr(models, "_cache_of", None)  # whoever embeds a document calls it
    found = eval(compression, namespace).invoke(QUERY)
    assert [one.metadata["dartboard"]["vector_source"] for one in found] == ["given"] * 5


def test_the_example_is_large_enough_for_sigma_to_come_from_it():
    namespace: dict[str, object] = {}
    exec(re.search(r"```python\n(PASSAGES.*?)```", PAGE, flags=re.DOTALL)[1], namespace)
    assert len(namespace["PASSAGES"]) >= SMALLEST_POOL


def test_the_extras_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r'pip install -e "\.\[(.*?)\]"', PAGE)
    assert len(named) == 3 and set(named) <= set(extras)


def test_every_key_of_a_note_is_explained():
    for text in (PAGE, rerank.__doc__):
        source = Path(rerank.__file__).read_text()
        keys = re.findall(r'^            "(\w+)":', source, flags=re.MULTILINE)
        assert len(keys) > 12
        for key in keys:
            assert re.search(rf"\b{key}\b", text), key
