"""The benchmarks: tables are those of the results, figures reach their aims, and small runs measure."""

import asyncio
import io
import itertools
import json
import sys
import tarfile
import time

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks import held_out, indexing, natural, quality, quality_tables, speed_tables, tables
from benchmarks.load_parts import client as load_client
from benchmarks.load_parts import corpus
from benchmarks.rivals import adagres, vrsd
from dartboard.datasets import make_query_focused, with_redundancy
from dartboard.embeddings import CachedModel, default_model
from dartboard.selection import pool
from dartboard.selection.kernel import DIVISOR, Sigma
from tests.api.small_app import serving
from tests.datasets.folders import beir_folder

# ---- What the documentation shows


@pytest.mark.parametrize("page", tables.SECTIONS)
def test_tables_are_those_of_the_results(page):
    assert (tables.ROOT / page).read_text() == tables.fresh(page), "run: python benchmarks/tables.py"


@pytest.mark.parametrize("name", tables.PICTURES)
def test_pictures_were_made_from_the_results(name):
    source, draw = tables.PICTURES[name]
    assert (tables.IMAGES / f"{name}.svg").read_text().endswith(tables.stamp(source))
    assert draw().startswith("<svg")


@pytest.mark.parametrize(
    ("name", "least"),
    [  # shares of nearest neighbours among 5 / 10 picks
        ("perspectrum_train", (1.08, 1.04)),
        ("hotpotqa_dev200", (0.97, 0.97)),
        ("musique_train100", (0.97, 0.97)),
        ("scifact", (0.97, 0.97)),
        ("rgb_int_neutronrag", (0.93, 0.93)),
        ("rgb_en_fact", (0.93, 0.93)),
    ],
)
def test_the_rule_for_sigma_reaches_its_aims_on_natural_data(name, least):
    row = tables.natural()[name]["clean"]["systems"]["dartboard"]
    rule = row.get("facets", row["all"])
    reached = [round(rule[depth]["mean"], 3) for depth in ("@5", "@10")]
    assert reached[0] >= least[0] and reached[1] >= least[1]


def test_the_divisor_is_the_one_that_the_choosing_halves_choose():
    assert quality_tables.chosen_divisor(tables.natural()) == DIVISOR


def test_sigma_and_coverage_are_believable():
    for name in quality_tables.NAMES:
        shown = tables.natural()[name]["clean"]["numbers"]
        assert 0.4 <= shown["coverage of 5 picks"] <= 0.99 and shown["first gain"] < 0.85
        assert 1 / 1.6 <= shown["sigma"] / shown["sigma by likelihood"] <= 1.6


def test_every_system_stands_in_every_cell_with_an_interval():
    for by_condition in tables.results("quality").values():
        assert set(by_condition) <= set(quality.CONDITIONS) and "clean" in by_condition
        for cell in by_condition.values():
            assert list(cell["systems"]) == quality.SYSTEMS
            for scores in cell["systems"].values():
                for depth in quality_tables.DEPTHS:
                    assert scores[depth]["low"] <= scores[depth]["mean"] <= scores[depth]["high"]


def test_the_main_table_shows_every_rival_and_bolds_the_best_of_any():
    lines = tables.compared().splitlines()
    assert len(lines) == 2 + len(quality_tables.RIVALS)
    bold = [line.split("|")[1].strip() for line in lines if "**" in line]
    assert set(bold) > {"dartboard"}, "somebody else is best at something"


def cell(ours, theirs, share):
    scores = {"cosine": theirs, "dartboard": ours}
    shares = {"cosine": 1.0, "dartboard": share}
    return {
        "systems": {
            name: {"@5": {"mean": mean}, "@10": {"mean": mean}, "share": {"mean": shares[name], "sd": 0.03}}
            for name, mean in scores.items()
        }
    }


def test_shares_and_the_lowest_by_hand():
    found = {"one": {"clean": cell(0.5, 0.6, 0.8)}, "two": {"clean": cell(0.4, 0.2, 0.9)}}
    mean, wide, sets = quality_tables.kept(found, "dartboard", "clean")
    assert (mean, sets) == (pytest.approx(0.85), 2)
    assert wide == pytest.approx(1.96 * (2 * 0.03**2) ** 0.5 / 2)
    assert quality_tables.lowest({}, found, "", "dartboard") == pytest.approx(0.5 / 0.6)


def test_a_phase_without_answers_has_no_times():
    found = tables.results("load")
    found["plain"]["calm after"] |= {"served": 0, "ms": None}
    assert "– | – | –" in speed_tables.services(found).splitlines()[-1]


# ---- Natural redundancy


def test_adagres_weighs_redundancy_by_the_candidates():
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8]])
    similarity = np.array([1.0, 1.0, 0.6])
    mean_pair = (1.0 + 0.6 + 0.6) / 3
    beta = similarity.mean() / (0.5 * mean_pair)
    assert 1.0 - beta * 1.0 < 0.6 - beta * 0.6, "the copy costs more than it brings"
    assert adagres(vectors, similarity, 2) == [0, 2]
    assert adagres(vectors, similarity, 1) == [0] and len(adagres(vectors, similarity, 9)) == 3


def test_vrsd_makes_the_sum_point_at_the_query():
    vectors = np.array([[0.8, 0.6], [0.8, 0.6], [0.7, -0.6]])
    assert vrsd(vectors, np.array([1.0, 0.0]), 2) == [0, 2], "the other side balances the first"
    assert vrsd(3 * vectors, np.array([0.1, 0.0]), 5) == [0, 2, 1]


def test_vrsd_survives_opposite_vectors():
    assert sorted(vrsd(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 0.0]), 2)) == [0, 1]


@pytest.fixture
def natural_bench(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("DARTBOARD_DATA", str(tmp_path / "data"))
    monkeypatch.setitem(natural.MEASURES, "small", "set_recall")
    beir_folder(tmp_path / "data", "small", docs=30)
    return lambda: natural.Bench(tmp_path / "out.json", fresh=False)


def test_a_cell_of_natural_redundancy_is_measured_once(natural_bench, tmp_path, monkeypatch):
    model = CachedModel(default_model())
    first = natural_bench()
    assert all(first.measure(model, "small", condition) for condition in natural.CONDITIONS)
    written = (tmp_path / "out.json").read_text()
    assert not any(natural_bench().measure(model, "small", condition) for condition in natural.CONDITIONS)
    assert (tmp_path / "out.json").read_text() == written
    cells = json.loads(written)[model.name]["small"]
    assert list(cells) == list(natural.CONDITIONS)
    for condition in ("clean", "hybrid"):
        nearest = cells[condition]["systems"][natural.NEAREST]
        assert [nearest[half]["both"]["mean"] for half in natural.HALVES] == [1.0] * 3
    assert list(cells["clean"]["systems"]) == [system.name for system in natural.SYSTEMS]
    monkeypatch.setattr(natural.Cell, "behaviour", lambda self: "otherwise")
    assert natural_bench().measure(model, "small", "clean"), "other picks, other numbers"


def test_halves_share_no_query():
    queries = np.arange(9)
    choosing, reporting = (queries[natural.HALVES[half]] for half in ("choosing", "reporting"))
    assert sorted([*choosing, *reporting]) == list(queries)


def test_differences_are_paired():
    base = np.random.default_rng(0).random((60, 2)) + 0.2
    found = natural.difference(base * 1.1, base, base)["both"]
    assert (found["mean"], found["low"], found["high"]) == (0.1, 0.1, 0.1)


def results(means, sd=0.01):
    rows = {f"median / {divisor:g}": mean for divisor, mean in zip(natural.DIVISORS, means, strict=True)}
    halves = {
        name: {"both": {"mean": mean, "sd": sd}, "@5": {"mean": mean}, "@10": {"mean": mean - 0.01}}
        for name, mean in rows.items()
    }
    cell = {name: {"choosing": row, "reporting": row} for name, row in halves.items()}
    return {"scifact": {"clean": {"systems": cell}}}


def test_the_smallest_divisor_within_the_interval_of_the_best_is_chosen():
    shares = [0.90, 0.97, 1.00, 1.01, 1.00]
    assert quality_tables.chosen_divisor(results(shares)) == 4.5
    assert quality_tables.chosen_divisor(results(shares, sd=0.001)) == 5.0


def release(folder, version, page):
    path = folder / f"tool-{version}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(f"tool-{version}/docs/guide.rst")
        member.size = len(page.encode())
        archive.addfile(member, io.BytesIO(page.encode()))
    return str(path)


def test_releases_become_a_held_out_set(tmp_path, monkeypatch):
    text = (
        "Call it with a path and it reads the file, line by line, until there is nothing left to read in it. "
        * 2
    )
    old = f"=====\nGuide\n=====\n\n{text}\n\nReading\n-------\n\n{text}old way\n\nShort\n-----\n\nno.\n"
    archives = [release(tmp_path, "1.0", old), release(tmp_path, "2.0", old.replace("old way", "new way"))]
    monkeypatch.setattr(sys, "argv", ["held_out", *archives, "--out", str(tmp_path / "set")])
    held_out.main()
    rows = [json.loads(line) for line in (tmp_path / "set" / "corpus.jsonl").read_text().splitlines()]
    assert [row["_id"] for row in rows] == ["1.0/guide#0", "1.0/guide#1", "2.0/guide#0", "2.0/guide#1"]
    assert rows[0]["title"] == "Guide" and rows[3]["text"].endswith("new way")
    facets = (tmp_path / "set" / "qrels" / "subtopics.txt").read_text().splitlines()
    assert facets[2:] == ["s0001 0 1.0/guide#1 1", "s0001 0 2.0/guide#1 1"]


# ---- Added redundancy


@pytest.fixture
def quality_bench(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "cache"))
    beir_folder(tmp_path / "data", "small", docs=30)
    return lambda **more: quality.Bench(tmp_path / "out.json", tmp_path / "data", fresh=False, **more)


def test_a_cell_of_added_redundancy_is_measured_once(quality_bench, tmp_path, monkeypatch):
    first = quality_bench()
    assert first.measure("small", "clean") and first.measure("small", "text edits")
    written = (tmp_path / "out.json").read_text()
    again = quality_bench()
    assert not again.measure("small", "clean") and (tmp_path / "out.json").read_text() == written
    cell = json.loads(written)["small"]["clean"]
    assert list(cell["systems"]) == quality.SYSTEMS
    assert cell["systems"]["cosine"]["share"]["mean"] == 1.0
    assert cell["systems"]["oracle"]["@5"]["mean"] == 1.0
    monkeypatch.setattr(quality, "behaviour", lambda dataset: "otherwise")
    assert quality_bench().measure("small", "clean"), "other picks, other numbers"


def test_the_interval_of_a_share_is_paired():
    base = np.random.default_rng(0).random((80, 2)) + 0.2
    same, half = quality.share(base, base), quality.share(base / 2, base)
    assert (same["mean"], same["low"], same["high"], same["sd"]) == (1.0, 1.0, 1.0, 0.0)
    assert half["mean"] == pytest.approx(0.5) and half["sd"] == pytest.approx(0.0, abs=1e-6)
    other = quality.share(np.random.default_rng(1).random((80, 2)), base)
    assert other["low"] < other["mean"] < other["high"]


@pytest.mark.parametrize("copies", [0, 2])
def test_another_sigma_is_another_behaviour(copies, monkeypatch):
    dataset = make_query_focused()
    dataset = with_redundancy(dataset, copies=copies, cosine=0.9) if copies else dataset
    before = quality.behaviour(dataset)
    assert quality.behaviour(dataset) == before
    monkeypatch.setattr(pool, "choose_sigma", lambda *_, **__: Sigma(0.3, "candidates"))
    assert quality.behaviour(dataset) != before


# ---- Indexing


def test_a_small_run_measures_every_system(monkeypatch, tmp_path):
    folder = tmp_path / "scifact"
    folder.mkdir()
    rows = (f'{{"_id": "{at}", "title": "T", "text": "Cats sleep on mat {at}."}}\n' for at in range(9))
    (folder / "corpus.jsonl").write_text("".join(rows))
    monkeypatch.setenv("DARTBOARD_DATA", str(tmp_path))
    monkeypatch.setattr(indexing, "_peers", lambda folder, threads: ({}, ["fastembed"]))
    found = indexing.measure([32], 4, 1, 1)
    (row,) = found["sizes"]
    assert row["chunks"] == 4 and list(row["systems"]) == [indexing.OURS, indexing.WHOLE]
    assert all(system["chunks_per_second"] > 0 for system in row["systems"].values())


def test_the_table_compares_with_the_whole_path():
    systems = {indexing.OURS: 30.0, indexing.WHOLE: 24.0, "fastembed": 12.0}
    row = {
        "tokens": 64,
        "mean_tokens": 42.4,
        "chunks": 8,
        "systems": {name: {"chunks_per_second": rate} for name, rate in systems.items()},
    }
    made = indexing.table({"sizes": [row]})
    assert "| chunks/s | 64 tokens (mean 42) |" in made
    assert "| fastembed | 12.0 (0.50×) |" in made and "| **`dartboard index`** | 24.0 |" in made


# ---- Load


def answering(stall=0.0, refuse_every=0):
    """A server that is quick, but for one stall of the whole loop, and that refuses some."""
    count = itertools.count(1)

    async def ask(request):
        number = next(count)
        assert (await request.json())["query"]
        if number == 5:
            time.sleep(stall)  # timing: the whole server stands still
        if refuse_every and number % refuse_every == 0:
            return JSONResponse({"detail": "busy"}, 429)
        return JSONResponse({"results": ["x" * 3000]})

    return Starlette(routes=[Route("/ask", ask, methods=["POST"])])


def measured(app, work):
    with serving(app) as port:
        load = load_client.Load(port, "/ask", lambda question: f'{{"query": "{question}"}}'.encode())

        async def run():
            try:
                return await work(load)
            finally:
                load.close()

        return asyncio.run(run())


def test_requests_leave_on_time_and_are_all_counted():
    found = measured(
        answering(refuse_every=4), lambda load: load.at_rate(itertools.repeat("why"), 200, 0.5, seed=1)
    )
    assert 60 < found["asked"] < 150
    assert found["asked"] == found["served"] + found["refused"]
    assert found["refused"] == found["asked"] // 4
    assert found["failed"] == 0
    assert found["ms"]["p50"] <= found["ms"]["p95"] <= found["ms"]["p99"] <= found["ms"]["max"]


def test_a_stall_counts_for_all_who_were_due_meanwhile():
    found = measured(
        answering(stall=0.4), lambda load: load.at_rate(itertools.repeat("why"), 200, 0.5, seed=1)
    )
    assert found["ms"]["max"] > 390
    assert found["ms"]["p50"] > 50, "most requests were due while the server stood still"


def test_clients_in_a_loop_find_the_capacity():
    found = measured(answering(), lambda load: load.saturating(itertools.repeat("why"), 3, 0.3))
    assert found["served"] == found["asked"] > 10
    assert found["clients"] == 3


def test_a_server_that_is_gone_is_a_failure():
    load = load_client.Load(1, "/ask", lambda question: b"{}")
    found = asyncio.run(load.at_rate(itertools.repeat("why"), 100, 0.1, seed=1))
    assert found["failed"] == found["asked"] > 0
    assert found["ms"] is None


def test_a_kept_connection_that_closes_is_no_failure():
    async def asked():
        answered = 0

        async def serve(reader, writer):
            nonlocal answered
            try:
                while True:
                    await reader.readuntil(b"{}")
                    answered += 1
                    if answered == 2:  # the connection was kept, and closes when it is used again
                        return
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            except asyncio.IncompleteReadError:
                return
            finally:
                writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        load = load_client.Load(port, "/ask", lambda question: b"{}")
        found = await load.saturating(itertools.repeat("why"), 1, 0.1)
        load.close()
        server.close()
        await server.wait_closed()
        return found

    found = asyncio.run(asked())
    assert found["served"] == found["asked"] > 2


def test_texts_and_questions_repeat_as_stated():
    notes = list(corpus.passages(60))
    assert len({text for text, _, _ in notes}) == 60
    assert [base for _, _, base in notes] == [number // corpus.NOTES for number in range(60)]
    assert notes == list(corpus.passages(60))
    asked = corpus.questions(3000, seed=1)
    assert asked == corpus.questions(3000, seed=1)
    repeated = 1 - len(set(asked)) / len(asked)
    assert repeated == pytest.approx(corpus.SHARE_REPEATED - corpus.HOT / 3000, abs=0.02)


def test_vectors_of_notes_stand_around_their_passage():
    made = corpus.vectors(50)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    alike = made @ made.T
    assert alike[0, 1] == pytest.approx(1 / (1 + 0.36**2), abs=0.05)
    assert alike[0, 1] > alike[0, 30]
