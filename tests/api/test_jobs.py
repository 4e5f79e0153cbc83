"""Long tasks: one at a time, bounded, with progress, stopped when asked."""

import threading

import pytest

from dartboard.api.errors import Busy, NotFound
from dartboard.api.jobs import Jobs
from dartboard.api.keys import Keys
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from tests.api.core_app import BASE, refused, running


@pytest.fixture
def jobs():
    made = Jobs(ServiceSettings(jobs=3), Metrics())
    yield made
    made.stop()


def until_stopped(progress):
    progress(1, 10, "working")
    while True:
        check()


def test_a_task_reports_and_ends(jobs):
    go = threading.Event()

    def task(progress):
        progress(1, 2, "half")
        go.wait(20)
        progress(2, 2, "whole")
        return {"found": 7}

    job = jobs.start("count", task)
    assert not job.wait(0.05)
    go.set()
    assert job.wait(20)
    assert job.as_dict() == {
        "id": job.id, "kind": "count", "state": "done", "done": 2, "total": 2, "message": "whole",
        "created": job.created, "started": job.started, "finished": job.finished,
        "result": {"found": 7}, "error": None,
    }  # fmt: skip
    assert jobs.get(job.id) is job
    assert jobs.list() == [job]


def test_failures_are_told_without_what_they_quote(jobs):
    def quoting(progress):
        raise InvalidInputError("no chunk 'secret' in the collection: check must_include")

    def unforeseen(progress):
        raise KeyError("secret")

    for task, said in ((quoting, "no chunk …"), (unforeseen, "the task failed")):
        job = jobs.start("fail", task)
        assert job.wait(20)
        assert job.state == "failed"
        assert said in job.error
        assert "secret" not in str(job.as_dict())
    assert job.problem.status == 500


def test_cancelling_what_runs_and_what_waits(jobs):
    running_job, waiting = jobs.start("a", until_stopped), jobs.start("b", until_stopped)
    assert jobs.cancel(waiting.id).state == "cancelled"
    jobs.cancel(running_job.id)
    assert running_job.wait(20)
    assert running_job.state == "cancelled"
    assert running_job.error is None
    after = jobs.start("c", lambda progress: {})
    assert after.wait(20)
    assert after.state == "done"
    assert jobs.cancel(after.id).state == "done"


def test_progress_stops_a_cancelled_task(jobs):
    def task(progress):
        while True:
            progress(1, 2)

    job = jobs.start("a", lambda progress: task(lambda done, total: progress(done, total, "")))
    jobs.cancel(job.id)
    assert job.wait(20)
    assert job.state == "cancelled"


def test_only_so_many_are_kept(jobs):
    kept = [jobs.start("a", until_stopped) for _ in range(3)]
    with pytest.raises(Busy):
        jobs.start("a", until_stopped)
    jobs.cancel(kept[1].id)
    new = jobs.start("b", lambda progress: {})
    with pytest.raises(NotFound):
        jobs.get(kept[1].id)
    assert jobs.list()[0] is new


def test_stopping_ends_everything():
    made = Jobs(ServiceSettings(), Metrics())
    first, second = made.start("a", until_stopped), made.start("b", until_stopped)
    made.stop()
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
