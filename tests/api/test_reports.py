"""Reports over HTTP: real ones, and nothing that is not one."""

import json
import re
import shutil
import time

import pytest

from dartboard.api.endpoints import reports
from dartboard.cli import main
from tests.api.pages_app import BASE, keys_of, running

ASKED = [
    "eval",
    "--dataset",
    "synthetic_clustered",
    "--resamples",
    "200",
    "--copies",
    "0",
    "--no-sigma-sweep",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the command line writes."""
    out = tmp_path_factory.mktemp("made") / "clustered"
    assert main([*ASKED, "--systems", "cosine,dartboard,mmr-0.5,random", "--out", str(out)]) == 0
    return out


@pytest.fixture
def client(tmp_path, made):
    shutil.copytree(made, tmp_path / "home" / "reports" / "clustered")
    with running(tmp_path, collection=None) as client:
        yield client


def test_the_list_has_the_headline_figures(client, made):
    answer = client.get(f"{BASE}/reports")
    assert answer.status_code == 200 and answer.json()["more"] == 0
    (entry,) = answer.json()["reports"]
    assert entry["name"] == "clustered" and entry["page"] and entry["problem"] is None
    assert {"results.json", "report.md", "report.html", "timings.json"} < set(entry["files"])
    assert "runs/synthetic_clustered/cosine.trec" in entry["files"]
    assert "per_query/synthetic_clustered.json" in entry["files"]
    (headline,) = entry["headlines"]
    record = json.loads((made / "results.json").read_text())["datasets"][0]
    quality = record["headline"]["quality"]
    assert headline["measure"] == record["measures"][quality] and headline["chunks"] == record["chunks"]
    assert {row["system"]: row["mean"] for row in headline["rows"]} == {
        name: found[quality]["mean"] for name, found in record["systems"].items()
    }
    means = [row["mean"] for row in headline["rows"]]
    assert means == sorted(means, reverse=True)
    assert headline["sentences"][0].startswith("dartboard reaches")


def test_the_page_is_served_under_a_policy_of_its_own(client, made):
    page = client.get(f"{BASE}/reports/clustered")
    assert page.status_code == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.text == (made / "report.html").read_text()
    policy = page.headers["content-security-policy"]
    assert policy.startswith("sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:")
    assert "script" not in policy and "frame-ancestors 'self'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "<script" not in page.text and not re.search(r"\son\w+=", page.text)
    ours = client.get(f"{BASE}/reports").headers["content-security-policy"]
    assert "unsafe-inline" not in ours


@pytest.mark.parametrize(
    ("file", "kind"),
    [
        ("results.json", "application/json"),
        ("report.md", "text/markdown; charset=utf-8"),
        ("report.html", "application/octet-stream"),
        ("runs/synthetic_clustered/cosine.trec", "text/plain; charset=utf-8"),
        ("per_query/synthetic_clustered.json", "application/json"),
    ],
)
def test_files_are_downloads(client, made, file, kind):
    answer = client.get(f"{BASE}/reports/clustered/{file}")
    assert answer.status_code == 200 and answer.content == (made / file).read_bytes()
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-disposition"].startswith('attachment; filename="clustered-')


def test_nothing_else_is_given_out(client, tmp_path):
    home = tmp_path / "home"
    (tmp_path / "secret.txt").write_text("secret")
    (home / "reports" / "clustered" / "notes.txt").write_text("secret")
    (home / "reports" / "clustered" / "timings.json").unlink()
    (home / "reports" / "clustered" / "timings.json").symlink_to(tmp_path / "secret.txt")
    outside = tmp_path / "outside"
    outside.mkdir()
    for name in ("results.json", "report.html"):
        (outside / name).write_text("secret")
    (home / "reports" / "linked").symlink_to(outside)
    (home / "reports" / "clustered" / "runs" / "away").symlink_to(outside)
    (outside / "x.trec").write_text("secret")
    for path in (
        "clustered/notes.txt",
        "clustered/timings.json",
        "clustered/parts/synthetic_clustered.jsonl",
        "clustered/runs/away/x.trec",
        "clustered/runs/..%2f..%2fresults.json",
        "clustered/..%2f..%2f..%2fsecret.txt",
        "clustered/%2e%2e/%2e%2e/%2e%2e/secret.txt",
        "clustered/per_query/..%2fresults.json",
        "clustered/results.json%00.txt",
        "clustered//etc/passwd",
        "linked",
        "linked/results.json",
        "missing",
        "..%2freports%2fclustered",
        "%00",
    ):
        answer = client.get(f"{BASE}/reports/{path}")
        assert answer.status_code == 404, path
        assert "secret" not in answer.text
    assert [one["name"] for one in client.get(f"{BASE}/reports").json()["reports"]] == ["clustered"]
    assert client.post(f"{BASE}/reports/linked/ticket").status_code == 404


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"datasets": [{}]}',
        b'{"datasets": [{"dataset": 5}]}',
        b'{"datasets": 5}',
        b"\xff\xfe",
        b'{"datasets": [{"dataset": "d", "chunks": 1, "judged": 1, "measures": {}, "headline": null}]}',
    ],
)
def test_a_damaged_report_says_so(client, tmp_path, content):
    folder = tmp_path / "home" / "reports" / "damaged"
    folder.mkdir()
    (folder / "results.json").write_bytes(content)
    listed = {one["name"]: one for one in client.get(f"{BASE}/reports").json()["reports"]}
    assert listed["damaged"]["problem"].startswith("results.json cannot be read")
    assert listed["damaged"]["headlines"] == [] and not listed["damaged"]["page"]
    assert listed["clustered"]["problem"] is None


def test_unfinished_huge_and_old_ones(client, tmp_path, monkeypatch):
    (tmp_path / "home" / "reports" / "begun" / "parts").mkdir(parents=True)
    (tmp_path / "home" / "reports" / "no report").mkdir()
    listed = {one["name"]: one for one in client.get(f"{BASE}/reports").json()["reports"]}
    assert set(listed) == {"begun", "clustered"}
    assert listed["begun"]["problem"].startswith("is not finished")
    monkeypatch.setattr("dartboard.api.endpoints.reports._LARGEST", 10)
    (tmp_path / "home" / "reports" / "clustered" / "results.json").touch()
    listed = {one["name"]: one for one in client.get(f"{BASE}/reports").json()["reports"]}
    assert "more than" in listed["clustered"]["problem"]
    monkeypatch.setattr("dartboard.api.endpoints.reports.LISTED", 1)
    answer = client.get(f"{BASE}/reports").json()
    assert len(answer["reports"]) == 1 and answer["more"] == 1


def test_no_reports_at_all(tmp_path):
    with running(tmp_path, collection=None) as client:
        assert client.get(f"{BASE}/reports").json() == {"reports": [], "more": 0}


def test_a_ticket_opens_one_report_for_a_while(tmp_path, made, monkeypatch):
    for name in ("one", "two (b)"):
        shutil.copytree(made, tmp_path / "home" / "reports" / name)
    path, who = keys_of(tmp_path)
    with running(tmp_path, collection=None, keys=path) as client:
        assert client.get(f"{BASE}/reports").status_code == 401
        assert client.get(f"{BASE}/reports/one").status_code == 401
        assert client.post(f"{BASE}/reports/one/ticket").status_code == 401
        assert client.get(f"{BASE}/reports/one/results.json").status_code == 401
        assert client.get(f"{BASE}/reports/one", headers=who["reader"]).status_code == 200
        url = client.post(f"{BASE}/reports/one/ticket", headers=who["reader"]).json()["url"]
        other = client.post(f"{BASE}/reports/two (b)/ticket", headers=who["reader"]).json()["url"]
        assert client.get(url).status_code == 200 and client.get(other).status_code == 200
        ticket = url.partition("ticket=")[2]
        for wrong in (
            other.partition("ticket=")[2],
            ticket[:-1] + "x",
            "",
            "1.x",
            "é.é",
            "9" * 30 + ".x",
            "..",
            "².",
        ):
            answer = client.get(f"{BASE}/reports/one", params={"ticket": wrong})
            assert answer.status_code == 401, wrong
        monkeypatch.setattr(time, "time", lambda now=time.time: now() + reports.TICKET_SECONDS + 2)
        assert client.get(url).status_code == 401
