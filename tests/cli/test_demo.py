"""``dartboard demo`` on the real model: what it shows is what the library says."""

import json
import logging

import pytest

from dartboard import MMR, Dartboard, DartboardConfig, DartboardRetriever
from dartboard.cli import main
from dartboard.cli.console import warn
from dartboard.datasets import demo as demo_corpus
from dartboard.embeddings import CachedModel, default_model
from dartboard.selection import TopK
from tests.cli.running import run


def asked_as_json(capsys, *arguments):
    assert main(["demo", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_interruption_keeps_what_was_encoded_and_the_next_run_goes_on(history):
    assert history.interrupted_code == 130 and history.interrupted_output == ""
    assert "Traceback" not in history.interrupted_errors and "are kept" in history.interrupted_errors
    assert 0 < history.kept < 150
    assert history.resumed_code == 0 and "Encoding the passages" in history.resumed_errors


def test_the_page_fits_80_plain_columns(history):
    done = run("demo", cache=history.cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout and max(map(len, done.stdout.splitlines())) <= 100
    for part in ("KNN", "MMR 0.5", "MMR 0.7", "Dartboard", "= repeats 1", "from dartboard import select"):
        assert part in done.stdout


def test_json_agrees_with_the_library(cache, capsys):
    said = asked_as_json(capsys, "--k", "4")
    model = CachedModel(default_model())
    corpus = demo_corpus.chunks(model.encode_documents(demo_corpus.texts()))
    retriever = DartboardRetriever(DartboardConfig(top_k=4, reranker_type="cosine"), model)
    question = demo_corpus.questions()[0].text
    methods = {"KNN": TopK(), "MMR 0.5": MMR(0.5), "MMR 0.7": MMR(0.7), "Dartboard": Dartboard()}
    assert list(said) == list(methods)
    for name, method in methods.items():
        expected, shown = retriever.search(question, corpus, method=method), said[name]
        assert shown["query"] == question
        assert [one["id"] for one in shown["chunks"]] == [chunk.id for chunk in expected.chunks]
        assert [one["gain"] for one in shown["chunks"]] == expected.metadata["gain"]


def test_options_reach_the_library(cache, capsys):
    said = asked_as_json(capsys, "Who may read a topic?", "--sigma", "0.2", "--mmr-relevance-weight", "0.3")
    assert list(said) == ["KNN", "MMR 0.3", "Dartboard"]
    assert said["Dartboard"]["query"] == "Who may read a topic?"
    assert (said["Dartboard"]["sigma"], said["Dartboard"]["sigma_source"]) == (0.2, "given")


def test_ready_made_questions_are_asked_by_number(cache, capsys):
    assert main(["demo", "--list-questions"]) == 0
    listed = capsys.readouterr().out
    assert all(question.text in listed for question in demo_corpus.questions())
    third = demo_corpus.questions()[2].text
    assert asked_as_json(capsys, "--number", "3")["Dartboard"]["query"] == third


@pytest.mark.parametrize("columns", ["60", "120", "400"])
def test_methods_stand_side_by_side_as_the_width_allows(columns, cache, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["demo", "--k", "12", "--number", "4"]) == 0
    page = capsys.readouterr().out
    sets = page.split("What each method picks")[1].split("Dartboard, pick by pick")[0]
    assert max(map(len, sets.splitlines()[1:14])) <= int(columns)
    assert ("MMR 0.5   " in sets) == (int(columns) >= 120)


@pytest.mark.parametrize("k", ["1", "20"])
def test_the_smallest_and_largest_set_for_any_question(k, cache, capsys):
    assert main(["demo", "--k", k, "--sigma", "0.1", "What does a [bold]topic[/bold] cost?"]) == 0
    page = capsys.readouterr().out
    assert "What does a [bold]topic[/bold] cost?" in page and f"{k} of 150 passages" in page
    assert "σ 0.1 was given" in page


def test_it_says_whether_anything_is_relevant(cache, capsys):
    assert main(["demo", "What is the capital of France?"]) == 0
    assert "Nothing relevant found" in capsys.readouterr().out
    assert main(["demo"]) == 0
    assert "Nothing relevant" not in capsys.readouterr().out


def test_a_terminal_without_unicode_gets_question_marks(history):
    done = run("demo", cache=history.cache, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0 and done.stdout.isascii()


def test_colours_only_where_wanted(history):
    assert "\x1b[1;36m" in run("demo", cache=history.cache, FORCE_COLOR="1").stdout
    assert "\x1b[1;36m" not in run("demo", cache=history.cache, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_an_unusable_cache_is_a_warning(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "file"))
    few = demo_corpus.passages()[:12]
    monkeypatch.setattr(demo_corpus, "passages", lambda: few)
    assert main(["demo", "--k", "2"]) == 0
    assert "going on without a cache" in capsys.readouterr().err


def test_what_the_library_logs_is_a_warning(monkeypatch, capsys):
    def log():
        logging.getLogger("dartboard.somewhere").warning("the cache is %s", "full")
        return ()

    monkeypatch.setattr(demo_corpus, "questions", log)
    assert main(["demo", "--list-questions"]) == 0
    assert capsys.readouterr().err == "dartboard: warning: the cache is full\n"
    warn("careful \x1b[31m")
    assert capsys.readouterr() == ("", "dartboard: warning: careful \n")


@pytest.mark.parametrize("number", range(1, 5))
def test_dartboard_says_more_where_nearest_neighbours_repeat_themselves(cache, capsys, number):
    found = asked_as_json(capsys, "--number", str(number))
    facts = {
        name: len({one["metadata"]["base"] for one in result["chunks"]}) for name, result in found.items()
    }
    assert facts["Dartboard"] >= 4 > facts["KNN"]
