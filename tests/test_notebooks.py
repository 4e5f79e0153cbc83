"""Every notebook in ``notebooks/`` runs, and what is kept in it is what a run gives.

Cells tagged ``stable`` print the same on every machine: their words are compared. Of the others, whose last
digits may differ, only whether they show something. Outputs are small and name no place of a machine.
"""

import itertools
import json
import re
import shutil
from pathlib import Path

import pytest

from dartboard.mining.dataset_writer import write_dataset
from dartboard.mining.judges import AnswerJudge
from dartboard.mining.pipeline import mine
from tests.examples import DEEP
from tests.mining.doors import house, raw

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MINED = ROOT / "notebooks" / "evaluate_retrieval.ipynb"
LARGEST = 300_000
PLACES = re.compile(
    r"/(?:home|root|tmp|work|Users|usr|var|opt|private)/|[A-Z]:\\\\|site-packages|\.venv|0x[0-9a-f]{8,}"
)

each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path):
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]


def joined(text):
    return text if isinstance(text, str) else "".join(text)


def words(cell):
    """What a cell printed or returned, as text."""
    said = []
    for output in cell["outputs"]:
        said.append(joined(output.get("text", "")) + joined(output.get("data", {}).get("text/plain", "")))
    return "".join(said)


def kinds(cell):
    """What kinds of outputs a cell has; a stream may come in several pieces."""
    return [kind for kind, _ in itertools.groupby(output["output_type"] for output in cell["outputs"])]


def everything(cell):
    return " ".join(
        [
            words(cell),
            *(
                joined(value)
                for output in cell["outputs"]
                for value in output.get("data", {}).values()
                if isinstance(value, (str, list))
            ),
        ]
    )


def run(path, folder, first=None):
    """Run all code cells, or the first ones."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"][:first]
    nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return notebook.cells


@pytest.fixture
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "notebook-cache"))
    for name in ("DARTBOARD_NOTEBOOK_DATASET", "DARTBOARD_NOTEBOOK_MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_all_are_there():
    assert {path.stem for path in NOTEBOOKS} == {
        "tour",
        "choosing_sigma",
        "evaluate_retrieval",
    }


@each
def test_what_is_kept_is_small_whole_and_of_no_machine(path):
    assert path.stat().st_size <= LARGEST
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert "error" not in kinds and kinds
    assert not any(output.get("name") == "stderr" for cell in cells for output in cell["outputs"])
    assert any("stable" in cell["metadata"].get("tags", ()) for cell in cells)
    for cell in cells:
        if found := PLACES.search(everything(cell)):
            pytest.fail(f"{path.name} names a place of a machine: {found.group()!r}")


@each
@pytest.mark.filterwarnings("ignore")  # of Jupyter's own
def test_a_run_gives_what_is_kept(path, tmp_path, own_cache):
    folder = tmp_path / "notebooks"
    shutil.copytree(ROOT / "notebooks", folder)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    kept = code_cells(path)
    if path == MINED and not DEEP:  # then long passages are embedded; the next test does so with short ones
        kept = kept[
            : 1 + max(at for at, cell in enumerate(kept) if "stable" in cell["metadata"].get("tags", ()))
        ]
    ran = run(folder / path.name, folder, len(kept))
    for number, (before, now) in enumerate(zip(kept, ran, strict=True), start=1):
        assert kinds(before) == kinds(now), (
            f"cell {number} of {path.name} shows other outputs: run it and keep them"
        )
        if "stable" in before["metadata"].get("tags", ()):
            assert words(before) == words(now), f"cell {number} of {path.name} says something else now"


@pytest.mark.filterwarnings("ignore")
def test_evaluation_runs_on_any_mined_data_set(tmp_path, own_cache, monkeypatch):
    data_set = write_dataset(mine(raw(tmp_path), AnswerJudge(), corpus=house()), tmp_path / "mined")
    monkeypatch.setenv("DARTBOARD_NOTEBOOK_DATASET", str(data_set))
    printed = "".join(words(cell) for cell in run(MINED, MINED.parent))
    assert "5 questions with a positive context" in printed and "kernels by size: {1: 4, 2: 1}" in printed
    for task in ("CODE_RETRIEVAL_QUERY", "RETRIEVAL_QUERY"):
        assert len(re.findall(rf"^{task}", printed, flags=re.MULTILINE)) == 1
    for name in ("KNN", "MMR", "Dartboard"):
        assert len(re.findall(rf"^  {name} @5 +1\.000", printed, flags=re.MULTILINE)) == 2


def test_evaluation_names_the_tasks():
    code = "".join(joined(cell["source"]) for cell in code_cells(MINED))
    for word in ("CODE_RETRIEVAL_QUERY", "RETRIEVAL_QUERY", "RETRIEVAL_DOCUMENT", "encode_documents"):
        assert word in code


def test_the_page_about_them_runs(capsys):
    page = ROOT / "docs" / "how-to" / "vectors.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, page.name, "exec"), namespace)
    assert len(blocks) >= 2 and "4 of 20 candidates by dartboard" in capsys.readouterr().out
    for path in NOTEBOOKS:
        assert path.name in page.read_text()
