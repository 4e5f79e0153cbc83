"""The page on retrievers: its code runs, its tables are those of the measurements, its names are known."""

import re
from pathlib import Path

from dartboard.retrievers import registry, retriever_by_name
from tests.models import WordBag

_PARTS = "multi-vector:code=1,comments=2"
PAGE = (Path(__file__).parents[2] / "docs" / "retrievers.md").read_text()


def test_the_first_code_runs(capsys):
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0], {})
    assert capsys.readouterr().out.startswith("a 1.0 {'hybrid': Share(rank=1, score=1.0)")


def test_names_are_those_of_the_registry():
    listed = registry.__doc__.split("::\n\n")[1].rstrip()
    assert listed in PAGE
    for name in ("dense", "bm25", "hybrid", "hybrid:0.6", "hybrid:dense=0.6,bm25=0.4", "rrf", _PARTS):
        assert name in listed
        assert retriever_by_name(name, model=WordBag())
