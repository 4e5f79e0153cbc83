"""Long tasks: one at a time, bounded, with progress, stopped when asked."""

import asyncio
import threading

import pytest

from dartboard.api.errors import Busy, NotFound
from dartboard.api.jobs import Jobs
from dartboard.api.keys import Keys
from dartboard.api.metrics import Metrics
from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from tests.api.core_app import BASE, refused, running
from tests.waiting import PATIENCE
from tests.waiting import wait_until as until


@pytest.fixture
def jobs():
    made = Jobs(3, Metrics())
    yield made
    asyncio.run(made.stop(0.0))


def until_stopped(progress):
    progress(1, 10, "working")
    while True:
        check()


def test_a_task_reports_and_ends(jobs):
    go = threading.Event()

    def task(progress):
        progress(1, 2, "half")
        go.wait(60)
        progress(2, 2, "whole")
        return {"found": 7}

    job = jobs.start("count", task)
    assert not job.ended.wait(0.05)  # timing: nothing may happen meanwhile
    go.set()
    assert job.ended.wait(60)
    assert (job.state, job.done, job.total, job.message, job.result) == ("done", 2, 2, "whole", {"found": 7})
    assert job.error is None and job.created <= job.started <= job.finished
    assert jobs.get(job.id) is job
    assert jobs.list() == [job]


def test_failures_are_told(jobs):
    def refused(progress):
        raise InvalidInputError("no chunk 'a' in the collection", field="must_include")

    def unforeseen(progress):
        raise KeyError("secret")

    first, second = jobs.start("a", refused), jobs.start("b", unforeseen)
    assert first.ended.wait(PATIENCE) and second.ended.wait(PATIENCE)
    assert (first.state, first.problem.status, second.state) == ("failed", 422, "failed")
    assert "'a'" in first.error and "secret" not in second.error


def test_cancelling_what_runs_and_what_waits(jobs):
    running_job, waiting = jobs.start("a", until_stopped), jobs.start("b", until_stopped)
    assert jobs.cancel(waiting.id).state == "cancelled"
    jobs.cancel(running_job.id)
    assert running_job.ended.wait(60)
    assert running_job.state == "cancelled"
    assert running_job.error is None
    after = jobs.start("c", lambda progress: {})
    assert after.ended.wait(60)
    assert after.state == "done"
    assert jobs.cancel(after.id).state == "done"


def test_progress_stops_a_cancelled_task(jobs):
    def task(progress):
        while True:
            progress(1, 2)

    job = jobs.start("a", lambda progress: task(lambda done, total: progress(done, total, "")))
    jobs.cancel(job.id)
    assert job.ended.wait(60)
    assert job.state == "cancelled"


def test_only_so_many_are_kept(jobs):
    kept = [jobs.start(kind, until_stopped) for kind in "abb"]
    with pytest.raises(Busy):
        jobs.start("a", until_stopped)
    jobs.cancel(kept[1].id)
    new = jobs.start("b", lambda progress: {})
    with pytest.raises(NotFound):
        jobs.get(kept[1].id)
    assert jobs.list()[0] is new


def test_the_running_job_gets_what_is_left_of_the_grace(caplog):
    made, go = Jobs(16, Metrics()), threading.Event()

    def task(progress):
        go.wait(60)
        progress(1, 1, "whole")
        return {"found": 7}

    first, second = made.start("a", task), made.start("b", task)
    until(lambda: first.state == "running")
    threading.Timer(0.2, go.set).start()
    asyncio.run(made.stop(PATIENCE))
    assert (first.state, first.result, second.state) == ("done", {"found": 7}, "cancelled")
    assert [second.id in record.getMessage() for record in caplog.records] == [True]


def test_a_job_that_outlasts_the_grace_is_named_in_the_log(caplog):
    made = Jobs(16, Metrics())
    job = made.start("a", until_stopped)
    until(lambda: job.done == 1)
    asyncio.run(made.stop(0.05))
    assert job.state == "cancelled"
    assert f"job {job.id} (a) is dropped at 1 of 10" in caplog.text


def test_an_upload_is_indexed_although_the_service_stops(tmp_path):
    files = [
        ("files", (f"{n}.md", f"# Note {n}\n\nwords of {n}".encode(), "text/markdown")) for n in range(40)
    ]
    with running(tmp_path, collection="notes") as client:
        assert client.post(f"{BASE}/collections/notes/files", files=files).status_code == 202
        until(lambda: client.app.state.service.jobs.list()[0].state == "running")
    with running(tmp_path) as client:
        assert client.get(f"{BASE}/collections/notes").json()["passages"] == 40


def test_stopping_ends_everything():
    made = Jobs(16, Metrics())
    first, second = made.start("a", until_stopped), made.start("b", until_stopped)
    asyncio.run(made.stop(0.0))
    assert (first.state, second.state) == ("cancelled", "cancelled")
    with pytest.raises(Busy):
        made.start("c", until_stopped)


def test_a_reader_sees_its_own_jobs(tmp_path):
    path = tmp_path / "keys.json"
    keys = Keys.open(path, create=True)
    headers = {
        name: {"Authorization": f"Bearer {keys.create(name, scopes)}"}
        for name, scopes in (("one", ["read"]), ("two", ["read"]), ("admin", ["read", "write"]))
    }
    with running(tmp_path, keys=path) as client:
        body = {"dataset_name": "synthetic_clustered", "background": True}
        refused(client.post(f"{BASE}/evaluate", json=body), 401)
        place = client.post(f"{BASE}/evaluate", json=body, headers=headers["one"]).json()["status_url"]
        assert client.get(place, headers=headers["one"]).status_code == 200
        assert client.get(place, headers=headers["admin"]).status_code == 200
        refused(client.get(place, headers=headers["two"]), 404)
        refused(client.delete(place, headers=headers["two"]), 404)
        assert client.get(f"{BASE}/jobs", headers=headers["two"]).json() == {"jobs": []}
        assert client.delete(place, headers=headers["one"]).status_code == 200
        refused(client.get(f"{BASE}/jobs/nothing", headers=headers["one"]), 404)
