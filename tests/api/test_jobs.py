"""Long tasks: one at a time, bounded, with progress, stopped when asked."""

import threading

import pytest

from dartboard.api.errors import Busy, NotFound
from dartboard.api.job_queue import JobQueue
from dartboard.api.keys import Keys
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.deadline import check
from dartboard.errors import InvalidInputError
from tests.api.core_app import BASE, refused, running
from tests.api.pages_app import keys_of
from tests.api.small_app import until


@pytest.fixture
def jobs():
    made = JobQueue(ServiceSettings(jobs=3), Metrics())
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
        go.wait(60)
        progress(2, 2, "whole")
        return {"found": 7}

    job = jobs.start("count", task)
    assert not job.wait(0.05)  # timing: nothing may happen meanwhile
    go.set()
    assert job.wait(60)
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
        assert job.wait(60)
        assert job.state == "failed"
        assert said in job.error
        assert "secret" not in str(job.as_dict())
    assert job.problem.status == 500


def test_cancelling_what_runs_and_what_waits(jobs):
    running_job, waiting = jobs.start("a", until_stopped), jobs.start("b", until_stopped)
    assert jobs.cancel(waiting.id).state == "cancelled"
    jobs.cancel(running_job.id)
    assert running_job.wait(60)
    assert running_job.state == "cancelled"
    assert running_job.error is None
    after = jobs.start("c", lambda progress: {})
    assert after.wait(60)
    assert after.state == "done"
    assert jobs.cancel(after.id).state == "done"


def test_progress_stops_a_cancelled_task(jobs):
    def task(progress):
        while True:
            progress(1, 2)

    job = jobs.start("a", lambda progress: task(lambda done, total: progress(done, total, "")))
    jobs.cancel(job.id)
    assert job.wait(60)
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


def test_one_kind_cannot_keep_the_others_out(jobs):
    go = threading.Event()

    def waiting(progress):
        go.wait(60)
        return {}

    evaluations = [jobs.start("evaluate", waiting) for _ in range(2)]
    with pytest.raises(Busy):
        jobs.start("evaluate", waiting)
    upload = jobs.start("index", waiting)
    go.set()
    assert all(job.wait(60) for job in (*evaluations, upload))
    assert evaluations[0].started <= upload.started <= evaluations[1].started  # kinds take turns
    assert jobs.start("evaluate", waiting).wait(60)


def test_a_reader_cannot_block_the_uploads_of_a_writer(tmp_path):
    path, who = keys_of(tmp_path)
    body = {"dataset_name": "synthetic_clustered", "background": True}
    with running(tmp_path, keys=path, jobs=4) as client:
        service = client.app.state.service
        assert client.put(f"{BASE}/collections/notes", headers=who["writer"]).status_code == 201
        hold = threading.Event()
        service.jobs.start("other", lambda progress: {"held": hold.wait(60)})
        codes = [
            client.post(f"{BASE}/evaluate", json=body, headers=who["reader"]).status_code for _ in range(5)
        ]
        assert codes == [202, 202, 202, 429, 429]
        hold.set()
        until(lambda: any(job.kind == "other" and job.ended.is_set() for job in service.jobs.list()))
        files = [("files", ("a.txt", b"words", "text/plain"))]
        answer = client.post(f"{BASE}/collections/notes/files", files=files, headers=who["writer"])
        assert answer.status_code == 202
        service.jobs.hurry()


def test_the_running_job_gets_what_is_left_of_the_grace(caplog):
    made, go = JobQueue(ServiceSettings(), Metrics()), threading.Event()

    def task(progress):
        go.wait(60)
        progress(1, 1, "whole")
        return {"found": 7}

    first, second = made.start("a", task), made.start("b", task)
    until(lambda: first.state == "running")
    made.close()
    threading.Timer(0.2, go.set).start()
    made.stop(20.0)
    assert (first.state, first.result, second.state) == ("done", {"found": 7}, "cancelled")
    assert [second.id in record.getMessage() for record in caplog.records] == [True]


def test_a_job_that_outlasts_the_grace_is_named_in_the_log(caplog):
    made = JobQueue(ServiceSettings(), Metrics())
    job = made.start("a", until_stopped)
    until(lambda: job.done == 1)
    made.stop(0.05)
    assert job.state == "cancelled"
    assert f"job {job.id} (a) is dropped at 1 of 10" in caplog.text


def test_who_tells_twice_does_not_wait():
    made = JobQueue(ServiceSettings(), Metrics())
    job = made.start("a", until_stopped)
    until(lambda: job.done == 1)
    threading.Timer(0.1, made.hurry).start()
    made.stop(3600.0)
    assert job.state == "cancelled"


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
    made = JobQueue(ServiceSettings(), Metrics())
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
