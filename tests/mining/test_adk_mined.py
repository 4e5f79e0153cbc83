"""The data set under ``examples/adk/mined``: sound, and of the cases and the package that are there."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml

from dartboard.datasets import load_mined
from dartboard.mining.corpora import open_corpus
from dartboard.mining.registry import load_cases
from dartboard.mining.validation import validate

EXAMPLE = Path(__file__).parents[2] / "examples" / "adk"
FILE = EXAMPLE / "mined" / "retrieval_dataset.yaml"
ADVICE = "cases or corpus have changed: mine again by the command in examples/adk/README.md"


@pytest.fixture(scope="module")
def written():
    return yaml.load(FILE.read_text(), Loader=yaml.CSafeLoader)


def test_it_is_sound():
    assert validate(FILE) == [] and FILE.stat().st_size < 2_000_000


def test_it_is_of_these_cases(written):
    cases = {case.id: case for case in load_cases(EXAMPLE)}
    pairs = {pair["id"]: pair for pair in written["pairs"]}
    assert pairs.keys() == cases.keys(), ADVICE
    for identity, case in cases.items():
        assert pairs[identity]["query"] == case.question, ADVICE
        assert tuple(pairs[identity].get("answers", ())) == case.answers, ADVICE


def test_it_is_of_this_package(written):
    try:
        installed = version("google-adk")
    except PackageNotFoundError:
        pytest.skip("google-adk is not installed")
    if installed != "1.20.0":
        pytest.skip(f"google-adk {installed} is installed, the cases are about 1.20.0")
    assert written["corpus"]["fingerprint"] == open_corpus("package:google.adk").fingerprint, ADVICE


def test_its_judge_was_judged(written):
    controls = written["controls"]
    assert controls["false_positive"]["decided"] >= 36 and controls["false_positive"]["high"] < 0.25
    assert controls["false_negative"]["decided"] >= 12 and controls["false_negative"]["high"] < 0.25
    assert written["agreement"]["pairs"] > 40


def test_every_question_can_be_measured():
    data = load_mined(FILE)
    assert len(data) >= 12 and all(any(judged.values()) for judged in data.qrels.values())
    assert len(data.kernels) >= 12 and max(map(len, data.kernels.values())) >= 2


def test_programs_have_the_kernels_that_their_mending_needs(written):
    """Two teams of agents, and a copy of one: three documents."""
    (pair,) = (one for one in written["pairs"] if one["id"] == "fix_errors:07")
    assert [name.rpartition("agents.")[2] for name in pair["kernel"]] == [
        "base_agent.BaseAgent.clone",
        "llm_agent.LlmAgent",
        "sequential_agent.SequentialAgent",
    ]


@pytest.mark.parametrize("page", ["docs/mining.md", "examples/adk/README.md"])
def test_pages_that_mine_the_package_say_how_to_install_it(page):
    text = (EXAMPLE.parents[1] / page).read_text()
    install = text.find("pip install --no-deps google-adk==1.20.0")
    assert 0 <= install < text.index("dartboard mine run examples/adk --corpus package:google.adk")
