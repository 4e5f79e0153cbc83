"""Reports say what the records hold, stand alone, and come out the same twice."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from dartboard.datasets import read_run
from dartboard.errors import MissingExtraError
from dartboard.evaluation import plots
from dartboard.evaluation.experiment import evaluate_dataset
from dartboard.evaluation.html_report import page
from dartboard.evaluation.report import markdown, write_report
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.evaluation.summary import (
    best_of_families,
    family,
    headline_measures,
    headline_table,
    rival,
    rows,
    sentences,
    short,
    signed,
)
from tests.evaluation.data import clustered

SYSTEMS = ["cosine", "mmr-0.5", "mmr-0.9", "dedup-0.90", "random", "dartboard", "dartboard-hybrid", "oracle"]
TEXTS = {f"q{q:02}": f"is <b>{q}</b> & {'more ' * 40}" for q in range(12)}


def config(folder, **more):
    settings = {"datasets": ["clustered"], "retrievers": SYSTEMS, "resamples": 200, "copies": [0, 2]}
    return EvaluationConfig(**(settings | {"output_dir": str(folder)} | more))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    settings = config(folder)
    outcome = evaluate_dataset(clustered(), settings)
    write_report([outcome], settings, {"clustered": TEXTS})
    return folder, outcome


def test_everything_is_written(written):
    folder, outcome = written
    results = json.loads((folder / "results.json").read_text())
    assert results["format"] == 1
    assert results["config"]["k_values"] == [1, 3, 5, 10]
    assert results["datasets"] == [outcome.record]
    queries = json.loads((folder / "per_query" / "clustered.json").read_text())
    assert len(queries["query_ids"]) == 12
    mean = np.mean(queries["systems"]["dartboard"]["ndcg@5"])
    assert mean == pytest.approx(outcome.record["systems"]["dartboard"]["ndcg@5"]["mean"], abs=1e-5)
    names = {path.name for path in (folder / "runs" / "clustered").iterdir()}
    assert {"cosine.trec", "random-seed0.trec", "random-seed9.trec"} <= names
    assert set(json.loads((folder / "timings.json").read_text())["seconds_per_question"]) == {"clustered"}


def test_runs_hold_all_candidates_with_the_picks_first(written):
    folder, outcome = written
    (run,) = outcome.runs["dartboard"]
    read = read_run(folder / "runs" / "clustered" / "dartboard.trec")
    for query_id, picks in run.items():
        assert list(read[query_id])[: len(picks)] == picks
        assert set(read[query_id]) == set(outcome.candidates[query_id])
    rest = {one: read["q00"][one] for one in list(read["q00"])[10:]}
    assert rest == {one: outcome.candidates["q00"][one] for one in rest} and len(rest) > 20
    oracle = read_run(folder / "runs" / "clustered" / "oracle.trec")
    assert max(map(len, oracle.values())) == 10, "it chooses from the whole corpus"


def test_the_same_seed_gives_the_same_bytes(written, tmp_path):
    folder, _ = written
    settings = config(tmp_path, workers=3)
    write_report([evaluate_dataset(clustered(), settings)], settings, {"clustered": TEXTS})
    files = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 10
    for file in files:
        if file.name != "timings.json":
            assert (folder / file).read_bytes() == (tmp_path / file).read_bytes(), file


def test_the_page_stands_alone(written):
    html = (written[0] / "report.html").read_text()
    assert html.startswith("<!doctype html>")
    links = set(re.findall(r"https?://[^\"' <]+", html))
    assert all(link.startswith("http://www.w3.org/") for link in links), links
    for foreign in ("<script", "<link", "@import", "src="):
        assert foreign not in html
    assert len(html) < 600_000


def test_the_page_has_its_pictures_and_words(written):
    html = (written[0] / "report.html").read_text()
    for title in (
        "Quality against diversity",
        "Measures against k",
        "Dartboard along sigma",
        "Recall against redundancy",
        "dartboard against",
    ):
        assert f'aria-label="{title}' in html
    assert "calibrated 0." in html and "auto 0." in html
    assert "dartboard-hybrid was skipped" in html
    ids = re.findall(r'id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert plots.INK not in html and plots.GRID not in html


def test_queries_are_named_safely(written):
    html = (written[0] / "report.html").read_text()
    assert "&lt;b&gt;" in html
    assert not re.search(r"is <b>\d", html)


def test_markdown_has_the_headline(written):
    folder, outcome = written
    text = (folder / "report.md").read_text()
    assert text == markdown([outcome.record])
    assert "| dartboard |" in text
    assert "near-copies at cosine 0.97" in text
    assert "dartboard-hybrid was skipped" in text


def test_the_headline_is_short_and_sorted(written):
    record = written[1].record
    table = headline_table(record)
    assert table[0][0] == "system" and table[1][1] == "1.000"
    assert len(headline_measures(record)) <= 5
    means = [row.mean for row in rows(record)]
    assert means == sorted(means, reverse=True)
    assert len({len(line) for line in table}) == 1


def test_words(written):
    said = sentences(written[1].record)
    assert said[0].startswith("dartboard reaches Set recall@5 ")
    assert any("better than" in one or "difference from" in one for one in said)
    assert not any("random" in one or "oracle" in one for one in said)
    about_copies = next(one for one in said if "near-copies of every chunk" in one)
    assert any(f", {rival}" in about_copies for rival in ("mmr", "dedup", "pyversity")), "the best rival"
    assert any("diverse than cosine's" in one for one in said)
    assert any("with 2 near-copies of every chunk: dartboard" in one for one in said)


def test_an_interval_without_a_limit_does_not_stretch_the_picture(written):
    record = written[1].record
    sigmas, fitted = record["sweep"]["sigmas"], record["sweep"]["calibrated"]

    def drawn(low):
        return plots.sweep(record | {"sweep": record["sweep"] | {"calibrated": fitted | {"low": low}}})

    assert drawn(7e-7) == drawn(sigmas[0]) != drawn(fitted["value"])


def test_too_few_queries_are_admitted():
    outcome = evaluate_dataset(clustered(queries=3), config("unused", sigma_sweep=False, copies=[]))
    assert "3 queries are too few: no difference could come out significant." in sentences(outcome.record)
    record = evaluate_dataset(clustered(queries=1), config("unused", sigma_sweep=False, copies=[])).record
    assert "1 query is too few: no difference could come out significant." in sentences(record)
    assert "1 queries" not in " ".join(sentences(record)) + markdown([record])
    assert "1 judged query," in markdown([record])


def test_columns_that_tell_nothing_apart_are_left_out():
    record = evaluate_dataset(clustered(), config("unused", sigma_sweep=False, copies=[])).record
    for measures in record["systems"].values():
        measures["success@5"] = {"mean": 0.0, "low": 0.0, "high": 0.0}
    assert "success@5" not in headline_measures(record)


def test_families():
    assert [family(name) for name in ("mmr-0.5", "dartboard-hybrid", "bm25")] == ["mmr", "dartboard", "bm25"]
    assert plots.colour("bm25") == plots.colour("bm25")
    assert plots.colour("mmr-0.1") == plots.COLOURS["mmr"]


def test_the_best_of_each_family(written):
    record = written[1].record
    best = best_of_families(record)
    assert len([name for name in best if name.startswith("mmr")]) == 1
    assert not {"oracle", "random"} & set(best)
    assert rival(record) in best and rival(record) != "dartboard"


def test_numbers_are_short():
    assert [short(value) for value in (0.5, 1.0, -0.25, 0.0)] == [".500", "1.000", "-.250", ".000"]
    assert [signed(value) for value in (0.5, -0.25)] == ["+.500", "−.250"]


def test_a_lone_system_still_has_a_page():
    settings = config("unused", retrievers=["cosine"], k_values=[5], copies=[], metrics=["ndcg"])
    outcome = evaluate_dataset(clustered(), settings)
    html = page([outcome.record], {"clustered": outcome.scores}, {"clustered": {}})
    assert "Query by query" not in html and "Quality against" not in html and "Deeper lists" not in html
    assert sentences(outcome.record) == [sentences(outcome.record)[0]]


def test_equal_systems_have_no_outliers():
    settings = config(
        "unused", retrievers=["dartboard", "oracle", "cosine"], copies=[], metrics=["hit_rate@10"]
    )
    outcome = evaluate_dataset(clustered(queries=2), settings)
    html = page([outcome.record], {"clustered": outcome.scores}, {"clustered": {}})
    assert "No query tells the two apart" in html


def test_several_data_sets_share_a_page():
    one, two = clustered(), clustered(copies=1, seed=1)
    two.name = "other <set>"
    outcomes = [evaluate_dataset(data, config("unused", sigma_sweep=False)) for data in (one, two)]
    html = page(
        [outcome.record for outcome in outcomes],
        {outcome.record["dataset"]: outcome.scores for outcome in outcomes},
        {"clustered": {}, "other <set>": {}},
    )
    assert "<h2>clustered</h2>" in html and "<h2>other &lt;set&gt;</h2>" in html
    assert "No comparison with near-copies" in html
    assert "No comparison with near-copies" in markdown([outcome.record for outcome in outcomes])


def test_without_matplotlib_the_message_is_the_command(written, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[eval\]'"):
        plots.trade_off(written[1].record)


def test_outliers_are_the_largest_gaps():
    ahead, behind = plots.outliers([1.0, 0.5, 0.2, 0.9], [0.0, 0.5, 0.4, 0.8], count=1)
    assert (ahead, behind) == ([0], [2])


def test_importing_the_room_stays_light():
    code = (
        "import sys, dartboard.evaluation, dartboard.evaluation.report; "
        "heavy = ('matplotlib', 'scipy', 'torch', 'onnxruntime', 'rich', 'pyversity'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
