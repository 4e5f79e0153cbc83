"""``examples/evaluate_retrieval.ipynb`` runs from its first cell to its last."""

import json
import re
from pathlib import Path

import pytest

from dartboard.mining.judges import AnswerJudge
from dartboard.mining.mine import mine
from dartboard.mining.writing import write_dataset
from tests.mining.doors import house, raw

NOTEBOOK = Path(__file__).parents[2] / "examples" / "evaluate_retrieval.ipynb"


@pytest.fixture
def data_set(tmp_path):
    return write_dataset(mine(raw(tmp_path), AnswerJudge(), corpus=house()), tmp_path / "mined")


@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
def test_it_runs_on_a_mined_data_set(data_set, tmp_path_factory, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("DARTBOARD_NOTEBOOK_DATASET", str(data_set))
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "mining-cache"))
    monkeypatch.delenv("DARTBOARD_NOTEBOOK_MODEL", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": NOTEBOOK.parent}}
    ).execute()
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
    assert "5 questions with a positive context" in printed and "kernels by size: {1: 4, 2: 1}" in printed
    for task in ("CODE_RETRIEVAL_QUERY", "RETRIEVAL_QUERY"):
        assert len(re.findall(rf"^{task}", printed, flags=re.MULTILINE)) == 1
    for name in ("KNN", "MMR", "Dartboard"):
        assert len(re.findall(rf"^  {name} @5 +1\.000", printed, flags=re.MULTILINE)) == 2


def test_what_is_kept_of_it_is_small_and_names_the_tasks():
    text = NOTEBOOK.read_text()
    cells = json.loads(text)["cells"]
    assert len(text) < 40_000
    code = "".join(line for cell in cells if cell["cell_type"] == "code" for line in cell["source"])
    for word in ("CODE_RETRIEVAL_QUERY", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "encode_documents"):
        assert word in code
    assert not any(output["output_type"] == "error" for cell in cells for output in cell.get("outputs", ()))
