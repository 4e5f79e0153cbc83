"""The benchmark of answers: scores by hand, the journal, and results of several models in one file."""

import json

import pytest

from benchmarks import answers
from benchmarks.answers import CONDITIONS, CONTEXTS, OURS, SYSTEMS, Asked, Journal
from benchmarks.language_models import GEMMA3, QWEN_CODER
from dartboard.mining.cases import Case

CAPITAL = Case(id="q", question="What is the capital of France?", facets=(("Paris", "City of Light"),))
YEARS = Case(id="y", question="In which years?", facets=(("1998",), ("2018",)))


@pytest.mark.parametrize(
    ("answer", "case", "exact", "f1", "contains"),
    [
        ("The Paris.", CAPITAL, 1, 1, 1),
        ("Paris, France", CAPITAL, 0, 2 / 3, 1),
        ("city of light", CAPITAL, 1, 1, 1),
        ("Lyon", CAPITAL, 0, 0, 0),
        ("Lyon\nParis", CAPITAL, 0, 0, 1),  # words are compared in the first line
        ("1998 2018", YEARS, 1, 1, 1),
        ("1998", YEARS, 0, 2 / 3, 0),
    ],
)
def test_scores(answer, case, exact, f1, contains):
    found = answers.scores_of(answer, "nothing", case)
    assert found == pytest.approx([exact, f1, contains, 0])


def test_an_answer_is_in_the_context_if_all_its_parts_are():
    assert answers.scores_of("", "Won in 1998 and in 2018.", YEARS)[3] == 1
    assert answers.scores_of("", "Won in 1998.", YEARS)[3] == 0


def test_the_journal_survives_a_line_that_was_cut_short(tmp_path):
    path = tmp_path / "model.jsonl"
    journal = Journal(path)
    journal.add("first", "one", 1.0)
    journal.add("second", "two", 2.0)
    path.write_text(path.read_text()[:-9])
    again = Journal(path)
    assert "first" in again and "second" not in again
    again.add("second", "two", 2.0)
    assert Journal(path)["second"]["answer"] == "two"


def asked(name, number, right):
    """A question whose context contains the answer for the systems in ``right``."""
    keys = [(c, kind, system) for c in CONDITIONS for kind in CONTEXTS for system in SYSTEMS]
    contexts = {key: "Paris" if key[2] in right else "Lyon" for key in keys}
    prompts = {key: f"{number} {key[0]} {key[1]} {text}" for key, text in contexts.items()}
    return Asked(set=name, case=CAPITAL, prompts=prompts, contexts=contexts)


@pytest.fixture
def found(tmp_path):
    """Forty questions; Dartboard's contexts contain the answer, and the model names it. One is open."""
    group = [asked("HotpotQA", number, {OURS, "mmr-0.7"}) for number in range(40)]
    journal = Journal(tmp_path / "model.jsonl")
    for one in group:
        for key, prompt in one.prompts.items():
            if prompt not in journal and not (prompt.startswith("0 ") and key[1] == "5 passages"):
                journal.add(prompt, one.contexts[key], 1.0)
    return answers.results(group, journal)


def test_only_whole_questions_are_counted(found):
    assert {kind: one["questions"] for kind, one in found["sets"]["all"].items()} == {
        "5 passages": 39,
        "400 tokens": 40,
    }
    assert found["prompts"] == 39 * 8 + 4
    cell = found["sets"]["HotpotQA"]["400 tokens"]
    assert cell["named"] == 1
    assert cell["conditions"]["as it is"]["cosine"]["contains"]["ours_more"] == [1, 1, 1]
    assert cell["conditions"]["as it is"]["mmr-0.7"]["contains"]["ours_more"] == [0, 0, 0]


def test_results_of_other_models_stay_in_the_file(found, tmp_path):
    path = tmp_path / "answers.json"
    answers.save(path, GEMMA3.name, found)
    answers.save(path, QWEN_CODER.name, found)
    answers.save(path, GEMMA3.name, {**found, "prompts": 7})
    kept = json.loads(path.read_text())
    assert list(kept) == [QWEN_CODER.name, GEMMA3.name]
    assert [one["prompts"] for one in kept.values()] == [found["prompts"], 7]


def test_the_page_says_where_a_difference_is_shown(found):
    said = answers.verdicts({"small": found})
    assert "**small**: of 32 comparisons" in said
    assert "more: contains the answer, corpus as it is, 5 passages, against nearest neighbours" in said
    assert "against MMR .7" not in said and "less: nowhere" in said
    assert "| `small` | 316 | 1.0 | 5 passages | 39 (HotpotQA 39) | 1.00 |" in answers.headline(
        {"small": found}
    )
    assert answers.table({"small": found}).count("| Dartboard | 1.00 | 1.00 | 1.00 | 1.00 |  |") == 4
    assert "| nearest neighbours | 0.00 / 0.00 |" in answers.set_table({"small": found})
