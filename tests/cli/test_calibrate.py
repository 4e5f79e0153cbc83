"""``dartboard calibrate`` on a data set that is always there."""

import json
import re

import pytest

from dartboard.calibration import Calibration, labelled_by
from dartboard.cli.app import main
from dartboard.datasets import load_dataset
from dartboard.engine import Engine
from dartboard.errors import InvalidInputError
from tests.datasets.folders import beir_folder, write_jsonl, write_text
from tests.models import WordBag


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path_factory.getbasetemp() / "calibrate-cache"))


def test_json_is_the_calibration_that_is_written(capsys, tmp_path):
    out = tmp_path / "calibration.json"
    arguments = ["calibrate", "--dataset", "synthetic_query_focused", "--measure", "recall"]
    assert main([*arguments, "--json", "--out", str(out)]) == 0
    shown = json.loads(capsys.readouterr().out)
    kept = Calibration.load(out)
    assert shown["kind"] == kept.kind and shown["sigma"]["value"] == kept.sigma.value
    assert kept.sigma.low < kept.sigma.value < kept.sigma.high and kept.sigma.pairs >= 20
    assert set(kept.held_out["default"]) == {"as it is", "with near-copies"}
    assert (
        kept.held_out["default"]["with near-copies"] > kept.held_out["nearest neighbours"]["with near-copies"]
    )


def test_the_page_says_what_to_use_and_why(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = tmp_path / "c.json"
    arguments = ["calibrate", "--dataset", "synthetic_query_focused", "--measure", "recall", "-k", "3"]
    assert main([*arguments, "--out", str(out)]) == 0
    page = capsys.readouterr().out
    assert "95 % interval" in page and "recall@3 on held-out queries" in page
    assert "Use " in page and "Written to" in page and "p against the rule" in page


def test_facets_are_counted_where_they_are_asked_for(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    arguments = ["calibrate", "--dataset", "synthetic_query_focused", "--measure", "facets", "-k", "3"]
    assert main(arguments) == 0
    page = capsys.readouterr().out
    assert "share of facets among 3 picks on held-out queries" in page
    assert main([*arguments, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["measure"] == "facets" and set(shown["held_out"]["default"]) == {"as it is"}


def test_facets_that_several_passages_cover_are_counted_unless_recall_is_asked_for(capsys, tmp_path):
    folder = beir_folder(tmp_path, "facets")
    write_text(folder / "qrels" / "subtopics.txt", "q1 1 d0 1\nq1 2 d1 1\nq2 1 d2 1\nq2 1 d4 1\n")
    for asked, counted in (([], "facets"), (["--measure", "recall"], "recall")):
        assert main(["calibrate", "--dataset", str(folder), "--json", *asked]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["measure"] == counted and "only 3 pairs" in shown["reason"]


def test_facets_that_nobody_judged_are_an_error(capsys, tmp_path):
    folder = beir_folder(tmp_path, "plain")
    assert main(["calibrate", "--dataset", str(folder), "--measure", "facets"]) == 2
    said = capsys.readouterr().err
    assert "have no facets" in said and "qrels/subtopics.txt" in said and "Traceback" not in said


def test_two_pairs_say_what_is_known(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    words = ["tea leaf", "coffee bean", "ship water", "car fuel", "house roof", "tree wood", "bread", "sand"]
    folder = beir_folder(tmp_path, "pairs")
    write_jsonl(folder / "corpus.jsonl", [{"_id": f"d{i}", "text": text} for i, text in enumerate(words)])
    write_jsonl(folder / "queries.jsonl", [{"_id": "a", "text": "tea"}, {"_id": "b", "text": "bread"}])
    write_text(folder / "qrels" / "test.tsv", "a\td0\t1\nb\td6\t1\n")
    assert main(["calibrate", "--dataset", str(folder)]) == 0
    page = capsys.readouterr().out
    assert re.search(r"(?m)^σ +none +at most 0\.\d+, no lower limit +2 pairs", page)
    assert "only 2 pairs" in page


def test_the_same_seed_gives_the_same_bytes(tmp_path, capsys):
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file in files:
        assert (
            main(["calibrate", "--dataset", "synthetic_query_focused", "--seed", "3", "--out", str(file)])
            == 0
        )
    assert files[0].read_bytes() == files[1].read_bytes()


def test_an_unknown_data_set_is_one_line(capsys, tmp_path):
    assert main(["calibrate", "--dataset", "nowhere", "--data", str(tmp_path)]) == 1
    error = capsys.readouterr().err.strip()
    assert "nowhere" in error and "Traceback" not in error


def test_a_data_set_without_query_vectors_is_refused():
    data = load_dataset("synthetic_query_focused")
    del data.metadata["query_embeddings"]
    with pytest.raises(InvalidInputError, match="has no query vectors"):
        labelled_by(data)


def test_alpha_is_fitted_and_kept_with_an_index(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.txt").write_text("A note about tea and coffee.")
    store = ["--store", str(tmp_path / "i.dartboard")]
    assert main(["index", "note.txt", *store]) == 0
    capsys.readouterr()
    assert main(["calibrate", "--dataset", "synthetic_adversarial", "--alpha", "--json", *store]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert 0 <= shown["alpha"]["alpha"] <= 1 and isinstance(shown["alpha"]["wins"], bool)
    assert main(["stats", "--json", *store]) == 0
    kept = json.loads(capsys.readouterr().out)["settings"]
    assert kept["calibration"]["kind"] == shown["kind"]
    expected = f"hybrid:{shown['alpha']['alpha']:.2f}" if shown["alpha"]["wins"] else "hybrid"
    assert kept["retriever"] == expected
    assert main(["stats", *store]) == 0
    line = next(one for one in capsys.readouterr().out.splitlines() if one.startswith("calibration: "))
    assert shown["reason"] in line and "{" not in line and " to " in line
    assert main(["calibrate", "--dataset", "synthetic_adversarial", "--alpha", *store]) == 0
    page = capsys.readouterr().out
    assert "α of a hybrid" in page and "Kept with" in page
    assert main(["search", "tea", "--json", *store]) == 0


def test_alpha_needs_real_texts(capsys):
    assert main(["calibrate", "--dataset", "synthetic_clustered", "--alpha"]) == 2
    assert "--alpha reads texts" in capsys.readouterr().err


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_an_index_that_is_not_there_is_told_at_once_and_not_made(tmp_path, capsys, scheme):
    missing = tmp_path / "nope.dartboard"
    assert main(["calibrate", "--dataset", "no such set", "--store", f"{scheme}{missing}"]) == 1
    said = capsys.readouterr().err
    assert "there is no index" in said and said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_collection_that_is_not_there_is_told_at_once(tmp_path, capsys):
    store = tmp_path / "x.dartboard"
    with Engine.open(str(store), model=WordBag(), retriever="dense") as engine:
        engine.create()
    assert main(["calibrate", "--dataset", "no such set", "--store", str(store), "-c", "other"]) == 1
    assert "no collection 'other'" in capsys.readouterr().err


def test_deleting_from_an_index_that_is_not_there_makes_none(tmp_path, capsys):
    assert main(["delete", "a", "--store", str(tmp_path / "nope.dartboard")]) == 1
    assert "there is no index" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
