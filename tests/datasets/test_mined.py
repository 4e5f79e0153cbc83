"""``retrieval_dataset.yaml``: read safely, checked, and complained about by line."""

import pytest

from dartboard.datasets import load_mined, prepare
from dartboard.errors import DatasetError
from dartboard.evaluation import Judgements, evaluate
from tests.datasets.folders import write_text
from tests.models import WordBag

GOOD = """\
pairs:
  - id: "fix_errors:01"
    query: "How do I create a minimal LlmAgent?"
    positive_ctxs:
      - fqn: "google.adk.agents.llm_agent.LlmAgent"
        text: |
          class LlmAgent:
              name: str
      - fqn: google.adk.tools.FunctionTool
        text: "class FunctionTool: ..."
    negative_ctxs:
      - fqn: "google.adk.plugins.RetryPlugin"
        text: "class RetryPlugin: ..."
    kernel: [google.adk.agents.llm_agent.LlmAgent, google.adk.tools.FunctionTool]
    answers: ["LlmAgent(name='a')"]
  - id: second
    query: And a retry?
    positive_ctxs:
      - {fqn: google.adk.plugins.RetryPlugin, text: "class RetryPlugin: ..."}
      - {fqn: google.adk.plugins.RetryPlugin, text: "Another part of it."}
    negative_ctxs:
"""


def test_a_mined_file(tmp_path):
    data = load_mined(write_text(tmp_path / "retrieval_dataset.yaml", GOOD))
    agent, tool, retry = (
        "google.adk.agents.llm_agent.LlmAgent",
        "google.adk.tools.FunctionTool",
        "google.adk.plugins.RetryPlugin",
    )
    assert data.name == "retrieval_dataset"
    assert data.queries == {"fix_errors:01": "How do I create a minimal LlmAgent?", "second": "And a retry?"}
    assert [passage.id for passage in data.passages] == [agent, tool, retry, f"{retry}#2"]
    assert next(iter(data.passages)).text == "class LlmAgent:\n    name: str\n"
    assert data.qrels == {
        "fix_errors:01": {retry: 0, agent: 1, tool: 1},
        "second": {retry: 1, f"{retry}#2": 1},
    }
    assert data.kernels == {"fix_errors:01": [agent, tool]}
    assert data.facets == {"fix_errors:01": {"1": [agent], "2": [tool]}}
    assert data.answers == {"fix_errors:01": ["LlmAgent(name='a')"]}
    assert set(data.pools["second"]) == {retry, f"{retry}#2"}


ALTERNATIVES = """\
pairs:
  - id: q
    query: Who is it?
    positive_ctxs:
      - {fqn: a, text: The first half.}
      - {fqn: b, text: The second half.}
      - {fqn: b2, text: The second half again.}
      - {fqn: both, text: Both halves.}
      - {fqn: c, text: A third of it.}
      - {fqn: d, text: Two thirds of it.}
    negative_ctxs: [{fqn: x, text: Something else.}]
    kernel: [a, b]
    alternatives: [[a, b2], [both], [c, d]]
"""


def test_alternatives_of_a_kernel_earn_credit(tmp_path):
    text = load_mined(write_text(tmp_path / "retrieval_dataset.yaml", ALTERNATIVES))
    assert text.alternatives == {"q": [["a", "b2"], ["both"], ["c", "d"]]}
    # "both" says what a and b say; which part of it c and d each say is not known
    assert text.facets == {"q": {"1": ["a", "both"], "2": ["b", "b2", "both"]}}
    judgements = Judgements.of(prepare(text, WordBag(), cache_dir=tmp_path))
    names = ["set_recall@2", "success@2", "jaccard@2", "subtopic_recall@2"]
    for picks, expected in (
        (("a", "b"), (1, 1, 1, 1)),
        (("b2", "a"), (1, 1, 1, 1)),
        (("both", "x"), (1, 1, 0.5, 1)),
        (("c", "d"), (1, 1, 1, 0)),
        (("b2", "x"), (0.5, 0, 1 / 3, 0.5)),
        (("x",), (0, 0, 0, 0)),
    ):
        found = evaluate({"q": picks}, judgements, names).means
        assert tuple(found.values()) == pytest.approx(expected), picks


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "line 1"),
        ("- a\n", "line 1"),
        ("rows: []\n", "line 1"),
        ("pairs:\n  a: b\n", "line 1"),
        ("pairs:\n  - just text\n", "line 2"),
        ("pairs:\n  - query: q\n", "line 2"),
        ("pairs:\n  - id: a\n    query: ''\n", "line 3"),
        (
            "pairs:\n  - id: NO\n    query: q\n",
            "line 2",
        ),
        ("pairs:\n  - id: 012\n    query: q\n", "line 2"),
        ("pairs:\n  - id: 1:30\n    query: q\n", "line 2"),
        ("pairs:\n  - id: [a]\n    query: q\n", "line 2"),
        ("pairs:\n  - id: a\n    id: b\n", "line 3"),
        ("pairs:\n- {id: a, query: q}\n- {id: a, query: q}\n", "line 3"),
        ("pairs:\n- id: a\n  query: q\n  positive_ctxs:\n  - fqn: x\n", "line 5"),
        ("pairs:\n- id: a\n  query: q\n  positive_ctxs: text\n", "line 4"),
        ("pairs:\n- id: a\n  query: q\n  kernel: [x]\n", "line 2"),
        (
            "pairs:\n- id: a\n  query: q\n  positive_ctxs: [{fqn: x, text: t}]\n"
            "  negative_ctxs: [{fqn: x, text: t}]\n",
            "line 2",
        ),
        ("pairs:\n  - id: 'a\n", "line 3"),
        ("pairs:\n - a: &x 1\n   b: *x\n", "line 3"),
        ("pairs:\n- !!python/object/apply:os.system ['true']\n", "line 2"),
        ("pairs:\n- id: !!python/name:os.system ''\n  query: q\n", "line 2"),
    ],
)
def test_malformed_files_are_named_by_line(tmp_path, content, complaint):
    path = write_text(tmp_path / "d.yaml", content)
    with pytest.raises(DatasetError, match=f"d.yaml, {complaint}"):
        load_mined(path)


def test_aliases_cannot_fill_memory(tmp_path):
    bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for one, other in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{other}: &{other} [" + ",".join([f"*{one}"] * 10) + "]\n"
    with pytest.raises(DatasetError, match=r"line 2: alias \*a"):
        load_mined(write_text(tmp_path / "bomb.yaml", bomb))


def test_other_encodings_are_refused(tmp_path):
    (tmp_path / "d.yaml").write_bytes("pairs: [ö]\n".encode("latin-1"))
    with pytest.raises(DatasetError, match="line 1"):
        load_mined(tmp_path / "d.yaml")


def test_a_file_that_was_cut_short_is_refused(tmp_path):
    head = 'format: "dartboard retrieval data set"\nversion: 2\n'
    end = 'end:\n  pairs: 2\n  sha256: "0"\n'
    path = tmp_path / "retrieval_dataset.yaml"
    assert len(load_mined(write_text(path, head + GOOD + end))) == 2
    for text, complaint in (
        (head + GOOD, "truncated"),
        (head + GOOD + "end:\n", "the file is truncated"),
        (head + GOOD + "end:\n  pairs: 2\n", "sha256"),
        (head + GOOD + end.replace("pairs: 2", "pairs: 3"), "the file has 2 pairs, and its end counts 3"),
    ):
        with pytest.raises(DatasetError, match=complaint):
            load_mined(write_text(path, text))


def test_ids_without_control_characters(tmp_path):
    path = write_text(tmp_path / "retrieval_dataset.yaml", GOOD.replace("id: second", 'id: "se\\0cond"'))
    with pytest.raises(DatasetError, match=r"line \d+: .*id.* holds the control character U\+0000"):
        load_mined(path)
