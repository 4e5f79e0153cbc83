"""``dartboard demo`` on the real model: what it shows is what the library says."""

import io
import json
import logging

import pytest
from rich.console import Console

from dartboard import MMR, Dartboard, DartboardConfig, DartboardRetriever
from dartboard.cli import main
from dartboard.cli.console import warn
from dartboard.cli.demo_view import encode_passages
from dartboard.datasets import demo as demo_corpus
from dartboard.embeddings import CachedModel, default_model
from dartboard.selection import TopK
from tests.cli.running import run
from tests.embeddings.hashing_model import HashingModel


def asked_as_json(capsys, *arguments):
    assert main(["demo", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def unwrapped(page):
    return " ".join(page.split())


def test_interruption_keeps_what_was_encoded(history):
    assert history.interrupted_code == 130
    assert history.interrupted_output == ""
    assert "Traceback" not in history.interrupted_errors
    assert "goes on from there" in history.interrupted_errors
    assert 0 < history.kept < 150


def test_the_next_run_encodes_only_the_rest(history):
    assert history.resumed_code == 0
    assert f"Encoding {150 - history.kept} passages" in history.resumed_errors
    assert f"{150 - history.kept} encoded now" in history.resumed_output


def test_the_page_fits_80_plain_columns(history):
    done = run("demo", cache=history.cache)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "vectors of 150 passages: from the cache" in done.stdout
    for part in ("KNN", "MMR 0.5", "MMR 0.7", "Dartboard", "= repeats 1", "from dartboard import select"):
        assert part in done.stdout


def test_json_agrees_with_the_library(cache, capsys):
    said = asked_as_json(capsys, "--k", "4")
    model = CachedModel(default_model())
    corpus = demo_corpus.chunks(model.encode_documents(demo_corpus.texts()))
    retriever = DartboardRetriever(DartboardConfig(top_k=4, reranker_type="cosine"), model)
    question = demo_corpus.questions()[0].text
    assert said["question"] == question
    assert said["corpus"] == {"passages": 150, "from_cache": 150}
    for shown, method in zip(said["methods"], [TopK(), MMR(0.5), MMR(0.7), Dartboard()], strict=True):
        expected = retriever.search(question, corpus, method=method)
        facts = expected.metadata
        picks = shown["picks"]
        assert shown["name"] == method.name
        assert [pick["rank"] for pick in picks] == [1, 2, 3, 4]
        assert [pick["chunk_id"] for pick in picks] == [chunk.id for chunk in expected.chunks]
        assert [pick["text"] for pick in picks] == [chunk.text for chunk in expected.chunks]
        for key in ("similarity", "gain", "coverage", "stands_for"):
            assert [pick[key] for pick in picks] == facts[key]
        assert shown["themes"] == len({chunk.metadata["theme"] for chunk in expected.chunks})
        assert shown["facts"] == len({chunk.metadata["base"] for chunk in expected.chunks})
        assert shown["mean_similarity"] == pytest.approx(sum(facts["similarity"]) / 4)
        assert shown["weakest_similarity"] == min(facts["similarity"])
        assert (shown["coverage"], shown["bound"]) == (facts["coverage"][-1], facts["bound"])
        assert shown["milliseconds"] > 0
        assert said["sigma"] == {"value": facts["sigma"], "source": "candidates"}
    assert [method["parameters"] for method in said["methods"]] == [
        {},
        {"relevance_weight": 0.5},
        {"relevance_weight": 0.7},
        {},
    ]


def test_options_reach_the_library(cache, capsys):
    said = asked_as_json(capsys, "Who may read a topic?", "--sigma", "0.2", "--mmr-relevance-weight", "0.3")
    assert said["question"] == "Who may read a topic?"
    assert said["sigma"] == {"value": 0.2, "source": "given"}
    assert [method["parameters"] for method in said["methods"]] == [{}, {"relevance_weight": 0.3}, {}]


def test_ready_made_questions_are_asked_by_number(cache, capsys):
    assert main(["demo", "--list-questions"]) == 0
    listed = capsys.readouterr().out
    assert all(question.text in listed for question in demo_corpus.questions())
    assert asked_as_json(capsys, "--number", "3")["question"] == demo_corpus.questions()[2].text


@pytest.mark.parametrize("columns", ["60", "80", "120", "160", "400"])
def test_every_width_is_kept(columns, cache, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["demo", "--k", "12", "--number", "4"]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= min(int(columns), 160)
    assert "+ another fact on a theme already there" in unwrapped(page)
    assert ("MMR 0.5   " in page.split("Summary")[0]) == (int(columns) >= 120)


@pytest.mark.parametrize("k", ["1", "20"])
def test_the_smallest_and_largest_set(k, cache, capsys):
    assert main(["demo", "--k", k, "--sigma", "0.1", "What does a [bold]topic[/bold] cost?"]) == 0
    page = unwrapped(capsys.readouterr().out)
    assert "What does a [bold]topic[/bold] cost?" in page
    assert f"{k} of 150 passages" in page
    assert "σ = 0.1 was given" in page
    assert ("the weights shown chose the same passages" in page) == (k == "1")


def test_a_terminal_without_unicode_gets_ascii(history):
    done = run("demo", cache=history.cache, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "####" in done.stdout


def test_colours_only_where_wanted(history):
    assert "\x1b[1;36m" in run("demo", cache=history.cache, FORCE_COLOR="1").stdout
    assert "\x1b[1;36m" not in run("demo", cache=history.cache, FORCE_COLOR="1", NO_COLOR="1").stdout


def test_an_unusable_cache_is_a_warning(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "file"))
    few = demo_corpus.passages()[:12]
    monkeypatch.setattr(demo_corpus, "passages", lambda: few)
    assert main(["demo", "--k", "2"]) == 0
    captured = capsys.readouterr()
    assert "going on without a cache" in captured.err
    assert "Encoding 12 passages: some seconds\n" in captured.err
    assert "12 encoded now" in captured.out


def test_what_the_library_logs_is_a_warning(monkeypatch, capsys):
    def log():
        logging.getLogger("dartboard.somewhere").warning("the cache is %s", "full")
        return ()

    monkeypatch.setattr(demo_corpus, "questions", log)
    assert main(["demo", "--list-questions"]) == 0
    assert capsys.readouterr().err == "dartboard: warning: the cache is full\n"


def test_warnings_go_to_stderr(capsys):
    warn("careful")
    assert capsys.readouterr() == ("", "dartboard: warning: careful\n")


def test_a_terminal_sees_a_bar_and_is_told_what_an_interruption_leaves(tmp_path):
    class Stopped(HashingModel):
        def _encode_batch(self, texts, task):
            if "short" in texts:
                raise KeyboardInterrupt
            return super()._encode_batch(texts, task)

    terminal = Console(file=io.StringIO(), force_terminal=True, width=100, highlight=False)
    texts = [f"a longer text, number {i}" for i in range(8)] + ["short"]
    with CachedModel(Stopped(), tmp_path / "vectors.sqlite") as model, pytest.raises(KeyboardInterrupt):
        encode_passages(model, texts, terminal)
    shown = terminal.file.getvalue()
    assert "8/9" in shown
    assert "Stopped with 8 of 9 passages encoded: they are kept" in shown


@pytest.mark.parametrize("number", range(1, 5))
def test_dartboard_says_more_where_nearest_neighbours_repeat_themselves(capsys, number):
    found = {each["name"]: each for each in asked_as_json(capsys, "--number", str(number))["methods"]}
    assert len(found["dartboard"]["picks"]) == 5
    assert found["dartboard"]["facts"] >= 4 > found["top_k"]["facts"]
