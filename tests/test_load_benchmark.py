"""The load benchmark measures what it says: a real server, times from when requests were due, real texts."""

import asyncio
import itertools
import json
import time

import numpy as np
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks import load_tables, tables
from benchmarks.load_parts import client as load_client
from benchmarks.load_parts import corpus
from tests.api.small_app import serving

MOVED = {
    "chromium": "150.1", "moves": 9,
    "round_trip": {"p50": 20.4, "p95": 31.0}, "answered": {"p50": 33.0, "p95": 41.0},
    "painted": {"p50": 50.0, "p95": 61.0},
}  # fmt: skip
REQUEST = {
    "setting": {"measured": "today", "rounds": 3},
    "now": {
        "cached": {"cpu_ms": 4.61, "event_loop_ms": 1.2},
        "new": {"cpu_ms": 9.2, "event_loop_ms": 1.3},
        "health": {"cpu_ms": 0.5, "event_loop_ms": 0.5},
        "stages_ms": {"encode": 0.1, "search": 0.8, "fetch": 0.1, "select": 2.04, "total": 3.1},
    },
}
HELD = {"second fifth": 400, "last fifth": 404, "most": 410, "own, by fifths": [1, 2, 3, 3, 3]}
PAGE = tables.ROOT / "docs" / "benchmarks" / "service.md"


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


def made_up():
    """A result as ``load.py`` writes it."""

    def phase(rate, p99, refused=0, failed=0):
        ms = {"p50": 10.0, "p95": 20.0, "p99": p99, "max": 2 * p99}
        return {
            "rate": rate, "clients": 8, "asked": 1000, "served": 1000 - refused - failed,
            "served_a_second": rate,
            "refused": refused, "failed": failed, "ms": ms, "settled_ms": ms,
            "refused_ms": ms if refused else None,
            "cpu_ms_a_request": 9.0, "stolen": 0.004, "seconds": 600, "megabytes_held": 512.3,
        }  # fmt: skip

    ours = {
        "calm": phase(5, 20.0), "target": phase(100, 25.0), "capacity": phase(150, 60.0),
        "overload": phase(300, 38.0, 500), "long questions": phase(140, 70.0), "calm after": phase(5, 20.0),
        "soak": phase(75, 22.0)
        | {"measured": "today", "growth": 0.011, "others": 0.21, "megabytes": HELD},
    }  # fmt: skip
    theirs = ours | {
        "target": phase(100, 9000.0, failed=970),
        "capacity": phase(30, 300.0),
        "overload": phase(60, 8000.0),
    }
    setting = {
        "measured": "today",
        "scale": 1.0,
        "chunks": 1000,
        "cores": 2,
        "share_repeated": 0.1,
        "hot_questions": 100,
    }
    return {"setting": setting, "dartboard": ours, "hybrid": ours, "processes": ours, "plain": theirs}


def test_the_page_by_hand():
    page = load_tables.page(made_up(), REQUEST, MOVED)
    assert "1.9 times that of a calm service (38 ms without the first second" in page
    assert "50% got 429" in page
    assert "serve 150 a second over 8 connections where one serves 150, and 300 instead of 300" in page
    assert "150 questions a second against 30 (5.0 times as many)" in page
    assert "+1.1%" in page
    assert "the fifths held 1, 2, 3, 3, 3 MB" in page
    assert "Other processes took 21% of the CPU time" in page
    assert "Round trip: 20 ms (31)." in page
    assert "| a question whose vector is cached | 4.6 | 1.2 |" in page
    assert "takes 0.9 ms and selecting from them 2.0 ms" in page
    assert "At 100 a second the plain service answered 3% of the questions within 30 seconds" in page
    assert "| 100 a second | 100 | 10.0 | 20.0 | 9,000 | 0.0% | 970 |" in page


def test_a_phase_without_answers_has_no_times():
    found = made_up()
    found["plain"]["calm after"] |= {"served": 0, "ms": None}
    assert "| calm again | 5 | – | – | – | 0.0% | 0 | – |" in load_tables.page(found, REQUEST, MOVED)


def test_words_too_are_told():
    found = made_up()
    found["hybrid"] = found["dartboard"]
    assert "its capacity is 150 a second; of 100 a second 0.0% were rejected, p99 25 ms." in load_tables.page(
        found, REQUEST, MOVED
    )


def test_a_result_makes_its_page(tmp_path, monkeypatch):
    kept = tables.RESULTS
    for path in kept.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "load.json").write_text(json.dumps(made_up()))
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    made = tables.documents()
    assert "150 questions a second against 30 (5.0 times as many)" in made[PAGE]
    assert (
        "answers 150 questions a second on 2 cores by vectors, 150 by default"
        in made[tables.ROOT / "docs" / "benchmarks" / "index.md"]
    )


def test_the_page_is_that_of_the_results():
    assert PAGE.read_text() == tables.documents()[PAGE], "run: python benchmarks/tables.py"
