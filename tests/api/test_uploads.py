"""Uploads: whatever a file is called stays in its folder, and every file is accounted for."""

import io
import os
import threading
import unicodedata
import zipfile

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dartboard.api.endpoints import uploads as uploads_module
from dartboard.api.multipart import safe_name, unique_name
from dartboard.ingest import pdf
from tests.api.core_app import LEAVE, PAY, upsert
from tests.api.pages_app import BASE, finished, keys_of, running
from tests.api.small_app import until
from tests.ingest.files import pdf_of
from tests.waiting import PATIENCE

UPLOAD = f"{BASE}/collections/notes/files"


@pytest.fixture
def client(tmp_path):
    with running(tmp_path) as client:
        yield client


def parts(*named):
    return [("files", (name, content)) for name, content in named]


def sources(client, name="notes"):
    collection = client.app.state.service.engines.get(name).collection
    return sorted({record.metadata["source"] for batch in collection.iterate() for record in batch})


def uploads(tmp_path):
    above = tmp_path / "home" / "uploads"
    return list(above.iterdir()) if above.exists() else []


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("tea.txt", "tea.txt"),
        ("docs/deep/tea.txt", "docs/deep/tea.txt"),
        ("../../etc/passwd", "etc/passwd"),
        ("/etc/passwd", "etc/passwd"),
        ("C:\\Users\\me\\tea.txt", "Users/me/tea.txt"),
        ("C:tea.txt", "tea.txt"),
        ("a/./b//c.txt", "a/b/c.txt"),
        ("..", "unnamed"),
        (". . /.../", "unnamed"),
        ("\x00\x1b[31mred.txt", "[31mred.txt"),
        ("exe.\u202etxt.pdf", "exe.txt.pdf"),
        ("a%22b%0D%0A.txt", 'a"b.txt'),
        ("e\u0301.txt", "\u00e9.txt"),
        ("<img src=x onerror=alert(1)>.md", "<img src=x onerror=alert(1)>.md"),
        (".env", ".env"),
        ("trailing. . ", "trailing"),
    ],
)
def test_names_are_made_safe(given_name, safe):
    assert safe_name(given_name) == safe


@given(st.text(max_size=400))
@example("é" * 300 + ".txt")
@example("/".join("abcdefgh" * 20 for _ in range(40)))
@example("a." + "b" * 300)
def test_no_name_leads_elsewhere(name):
    safe = safe_name(name)
    steps = safe.split("/")
    assert safe and not safe.startswith("/") and len(safe.encode()) <= 1100 and len(steps) <= 24
    for step in steps:
        assert step.strip(" .") and step not in (".", "..") and len(step.encode()) <= 200
        assert not set(step) & set("\\\x00\n\r")
        assert all(unicodedata.category(sign) not in ("Cc", "Cs") for sign in step)
    assert safe_name(safe) == safe


@given(
    st.lists(st.sampled_from(["a", "A", "a/b", "a/B.txt", "a/b/c", "b.txt", "B.TXT", "a (2)", "b (2).txt"]))
)
def test_names_are_kept_apart(names):
    known: set[str] = set()
    taken = [unique_name(name, known) for name in names]
    folded = [name.casefold() for name in taken]
    assert len(set(folded)) == len(folded)
    folders = {
        "/".join(name.split("/")[:depth]) for name in folded for depth in range(1, name.count("/") + 1)
    }
    assert not folders & set(folded)  # nowhere a file and a folder of one name
    assert not names or taken[0] == names[0]


def test_files_are_indexed_under_their_names(client, tmp_path):
    answer = client.post(
        UPLOAD,
        files=parts(
            ("tea.md", b"# Tea\n\nTea grows on hills."),
            ("../../guide/install.txt", b"Install it with care."),
            ("tea.md", b"# Tea\n\nAnother tea."),
            ("<b>bold</b>.txt", "größer".encode()),
        ),
    )
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert body["bytes"] == 26 + 21 + 19 + 8  # of the files, not of the form around them
    assert body["files"] == 4 and body["status_url"] == f"{BASE}/jobs/{body['job_id']}"
    job = finished(client, body)
    assert job["state"] == "done", job
    result = job["result"]
    assert (result["indexed"], result["unchanged"], result["left_out"]) == (4, 0, 0)
    assert {one["name"]: one["chunks"] for one in result["files"]} == {
        "tea.md": 1,
        "guide/install.txt": 1,
        "tea (2).md": 1,
        "<b>bold</b>.txt": 1,
    }
    assert sources(client) == ["<b>bold</b>.txt", "guide/install.txt", "tea (2).md", "tea.md"]
    assert job["done"] == job["total"] > 0 and job["message"] == "4 of 4 files, 4 passages"
    assert uploads(tmp_path) == []
    assert str(tmp_path) not in str(job)
    found = client.post(f"{BASE}/retrieve", json={"query": "where does tea grow", "collection": "notes"})
    assert found.json()["results"][0]["metadata"]["source"] == "tea.md"


def test_the_same_name_again_replaces_and_the_same_bytes_are_known(client):
    first = finished(
        client, client.post(UPLOAD, files=parts(("a.txt", b"old words"), ("b.txt", b"same"))).json()
    )
    assert first["result"]["indexed"] == 2
    again = client.post(UPLOAD, files=parts(("a.txt", b"new words"), ("b.txt", b"same"))).json()
    result = finished(client, again)["result"]
    assert {one["name"]: one["state"] for one in result["files"]} == {
        "a.txt": "indexed",
        "b.txt": "unchanged",
    }
    collection = client.app.state.service.engines.get("notes").collection
    assert sorted(r.text for batch in collection.iterate() for r in batch) == ["new words", "same"]


def test_every_file_is_accounted_for(client):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w") as archive:
        archive.writestr("word/document.xml", "not xml")
    rows = b'{"text": "good row"}\n{"text": broken\n'
    answer = client.post(
        UPLOAD,
        files=parts(
            ("good.txt", b"fine"),
            ("empty.txt", b""),
            ("picture.png", b"\x89PNG\r\n\x1a\n" + bytes(200)),
            ("bad.docx", bomb.getvalue()),
            ("rows.jsonl", rows),
            ("site/.git/config", b"[core]"),
            ("site/.gitignore", b"*.log\n"),
            ("site/run.log", b"noise"),
            ("site/page.md", b"# Page\n\nWords."),
            (".alone", b"a hidden file that was named by itself"),
        ),
    )
    result = finished(client, answer.json())["result"]
    states = {one["name"]: (one["state"], one["message"]) for one in result["files"]}
    assert states["good.txt"] == ("indexed", "")
    assert states["site/page.md"] == ("indexed", "") and states[".alone"] == ("indexed", "")
    assert states["empty.txt"] == ("left_out", "is empty")
    assert states["picture.png"][0] == "left_out" and states["bad.docx"][0] == "left_out"
    assert states["rows.jsonl"][0] == "indexed" and "line 2" in states["rows.jsonl"][1]
    for hidden in ("site/.git/config", "site/.gitignore", "site/run.log"):
        assert states[hidden][0] == "left_out" and ".gitignore" in states[hidden][1]
    assert result["left_out"] == 6 and len(states) == 10
    assert [one["state"] for one in result["files"]][:6] == ["left_out"] * 6


def test_rules_of_folders_above_the_service_do_not_count(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.md\n")
    with running(tmp_path) as client:
        result = finished(client, client.post(UPLOAD, files=parts(("docs/a.md", b"# A\n\nwords"))).json())[
            "result"
        ]
        assert result["indexed"] == 1


def test_what_is_no_upload_is_refused(client, tmp_path):
    def said(**request):
        answer = client.post(UPLOAD, **request)
        return answer.status_code, answer.json()["code"]

    form = {"Content-Type": "multipart/form-data; boundary=x"}
    part = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nhalf'
    assert said(json={}) == (415, "unsupported_media_type")
    assert said(content=b"x", headers={"Content-Type": "multipart/form-data"}) == (400, "bad_request")
    assert said(content=b"no form at all", headers=form) == (400, "bad_request")
    assert said(content=part, headers=form) == (400, "bad_request")  # it breaks off
    assert said(content=b"", headers=form) == (400, "bad_request")
    assert said(content=b"--x--\r\n", headers=form)[0] in (400, 422)
    assert said(data={"field": "value"}, files=[("files", ("", b""))]) in [
        (422, "invalid_input"),
        (400, "bad_request"),
    ]
    long = {"Content-Type": f"multipart/form-data; boundary={'x' * 300}"}
    assert said(content=b"", headers=long) == (400, "bad_request")
    assert uploads(tmp_path) == []
    assert client.post(f"{BASE}/collections/missing/files", files=parts(("a", b"a"))).status_code == 404
    demo = client.post(f"{BASE}/collections/demo/files", files=parts(("a", b"a")))
    assert (demo.status_code, demo.json()["code"]) == (409, "read_only")


def test_too_much_is_refused_and_nothing_stays(tmp_path, monkeypatch):
    with running(tmp_path, upload_bytes=2000) as client:
        answer = client.post(UPLOAD, files=parts(("a.txt", b"x" * 3000)))
        assert answer.status_code == 413

        def blocks():
            yield b'--x\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\n'
            for _ in range(50):
                yield b"y" * 100

        streamed = client.post(
            UPLOAD, content=blocks(), headers={"Content-Type": "multipart/form-data; boundary=x"}
        )
        assert streamed.status_code == 413
        monkeypatch.setattr("dartboard.api.multipart.MOST_FILES", 2)
        many = client.post(UPLOAD, files=parts(*((f"{n}.txt", b"x") for n in range(3))))
        assert many.status_code == 422 and "2 files" in many.json()["detail"]
        monkeypatch.setattr("dartboard.api.multipart._MOST_PARTS", 2)
        fields = client.post(UPLOAD, data={f"f{n}": "v" for n in range(4)}, files=parts(("a.txt", b"x")))
        assert fields.status_code == 422 and "parts" in fields.json()["detail"]
        assert uploads(tmp_path) == []


def test_a_writer_is_needed(tmp_path):
    path, who = keys_of(tmp_path)
    with running(tmp_path, keys=path) as client:
        form = parts(("a.txt", b"words"))
        assert client.post(UPLOAD, files=form).status_code == 401
        assert client.post(UPLOAD, files=form, headers=who["reader"]).status_code == 403
        assert client.post(UPLOAD, files=form, headers=who["writer"]).status_code == 202


def test_cancelling_keeps_what_is_finished_and_removes_the_files(tmp_path):
    with running(tmp_path) as client:
        service = client.app.state.service
        model = service.engines.get("notes").model
        release, begun, encode = threading.Event(), threading.Event(), model.encode_documents

        def slow(texts, *rest, **more):
            found = encode(texts, *rest, **more)
            if begun.is_set():
                release.wait(30)
            begun.set()
            return found

        model.encode_documents = slow
        many = parts(*((f"{n:03}.txt", f"passage number {n}".encode()) for n in range(150)))
        running_job = client.post(UPLOAD, files=many).json()
        waiting = client.post(UPLOAD, files=parts(("later.txt", b"later"))).json()
        assert begun.wait(30)
        until(lambda: service.jobs.get(running_job["job_id"]).done > 0)
        assert len(uploads(tmp_path)) == 2
        service.jobs.cancel(waiting["job_id"])
        until(lambda: len(uploads(tmp_path)) == 1)  # one that never had its turn
        service.jobs.cancel(running_job["job_id"])
        release.set()
        assert finished(client, running_job)["state"] == "cancelled"
        until(lambda: not uploads(tmp_path))
        model.encode_documents = encode
        assert 64 <= len(sources(client)) < 150
        again = finished(client, client.post(UPLOAD, files=many).json())["result"]
        assert again["indexed"] + again["unchanged"] == 150 and again["unchanged"] >= 64


def test_cancelling_ends_a_long_file_between_two_pages(client, monkeypatch):
    began, go, read = threading.Event(), threading.Event(), []
    whole = pdf._Pages._page_text

    def slow(self, page):
        read.append(page)
        began.set()
        go.wait(30)
        return whole(self, page)

    monkeypatch.setattr(pdf._Pages, "_page_text", slow)
    long = client.post(UPLOAD, files=parts(("long.pdf", pdf_of(*["some words"] * 20)))).json()
    after = client.post(UPLOAD, files=parts(("after.txt", b"other words"))).json()
    assert began.wait(30)
    client.delete(f"{BASE}/jobs/{long['job_id']}")
    go.set()
    assert finished(client, long)["state"] == "cancelled"
    assert finished(client, after)["state"] == "done"
    assert (len(read), sources(client)) == (1, ["after.txt"])


def test_a_slow_upload_stops_no_other_write(client, monkeypatch):
    began, go = threading.Event(), threading.Event()
    whole = pdf._Pages._page_text

    def slow(self, page):
        began.set()
        assert go.wait(PATIENCE)
        return whole(self, page)

    monkeypatch.setattr(pdf._Pages, "_page_text", slow)
    given = parts(("first.txt", b"some words"), ("slow.pdf", pdf_of("a page that takes long")))
    job = client.post(UPLOAD, files=given).json()
    try:
        assert began.wait(PATIENCE)
        assert client.put(f"{BASE}/collections/other").status_code == 201
        for name in ("notes", "other"):
            assert upsert(client, name, {"id": "leave", "text": LEAVE}).json()["accepted"] == 1
            assert client.delete(f"{BASE}/collections/{name}/documents/leave").json() == {"deleted": 1}
            assert upsert(client, name, {"id": "pay", "text": PAY}).json()["accepted"] == 1
        assert client.get(f"{BASE}/jobs/{job['job_id']}").json()["state"] == "running"
    finally:
        go.set()
    assert finished(client, job)["result"]["indexed"] == 2
    assert sources(client) == ["first.txt", "pay", "slow.pdf"]


def test_what_a_crash_left_behind_goes_after_a_day(client, tmp_path):
    above = tmp_path / "home" / "uploads"
    old, young = above / "dead-1", above / "dead-2"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (1_000_000, 1_000_000))
    finished(client, client.post(UPLOAD, files=parts(("a.txt", b"words"))).json())
    assert not old.exists() and young.exists()
    assert uploads_module._run() == uploads_module._run()


def test_long_lists_show_trouble_first(client, monkeypatch):
    monkeypatch.setattr("dartboard.api.endpoints.uploads.LISTED", 2)
    form = parts(("a.txt", b"a"), ("b.txt", b""), ("c.txt", b"c"))
    result = finished(client, client.post(UPLOAD, files=form).json())["result"]
    assert [one["name"] for one in result["files"]] == ["b.txt", "a.txt"] and result["more_files"] == 1
