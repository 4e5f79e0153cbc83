"""Saved cases: a data set that the command line reads, whole at every moment."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from dartboard.api.endpoints import cases
from dartboard.api.endpoints.cases import Case, CaseSets, query_id
from dartboard.cli import main
from dartboard.datasets import demo, load_beir
from tests.api.pages_app import BASE, finished, keys_of, running

IDS = [row["id"] for row in demo.passages()]
TEXTS = {row["id"]: row["text"] for row in demo.passages()}


@pytest.fixture
def client(tmp_path):
    with running(tmp_path, collection=None) as client:
        yield client


def case(query="Why is my consumer slow?", relevant=(IDS[0],), candidates=tuple(IDS[:10]), **more):
    return {
        "name": "support",
        "collection": "demo",
        "query": query,
        "relevant": list(relevant),
        "candidates": list(candidates),
        **more,
    }


def save(client, **more):
    answer = client.post(f"{BASE}/cases", json=case(**more))
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_case_is_a_data_set(client, tmp_path):
    saved = save(client)
    assert saved == {
        "name": "support",
        "query_id": query_id("why is  my consumer slow?"),
        "replaced": False,
        "relevant": 1,
        "queries": 1,
        "passages": 10,
    }
    more = save(
        client, query="What is a rebalance?", relevant=[IDS[12], IDS[5], IDS[12]], candidates=IDS[5:15]
    )
    assert (more["queries"], more["passages"], more["relevant"]) == (2, 15, 2)
    read = load_beir(tmp_path / "home" / "cases" / "support")
    assert {one.id: one.text for one in read.passages} == {id: TEXTS[id] for id in IDS[:15]}
    assert list(read.queries.values()) == ["Why is my consumer slow?", "What is a rebalance?"]
    assert read.qrels == {saved["query_id"]: {IDS[0]: 1}, more["query_id"]: {IDS[12]: 1, IDS[5]: 1}}


def test_case_page_and_documents_say_that_evaluation_ranks_by_vectors_alone(client, tmp_path):
    save(client)
    save(client, query="What is a rebalance?")
    lines = (tmp_path / "home" / "cases" / "support" / "queries.jsonl").read_text().splitlines()
    assert [json.loads(line)["metadata"]["note"] for line in lines] == [cases.NOTE] * 2
    root = Path(__file__).parents[2]
    told = [
        cases.NOTE,
        client.get("/openapi.json").json()["paths"][f"{BASE}/cases"]["post"]["description"],
        *((root / page).read_text() for page in ("docs/api.md", "docs/how-to/evaluation.md")),
        (root / "dartboard/web/static/evaluation.html").read_text(),
    ]
    assert all("by vectors alone" in " ".join(text.split()) for text in told)


def test_the_same_question_again_replaces_its_judgements(client):
    first = save(client)
    again = save(client, query=" why is my CONSUMER slow? ", relevant=[IDS[3], IDS[20]], candidates=[])
    assert again["replaced"] and again["query_id"] == first["query_id"]
    assert (again["queries"], again["passages"]) == (1, 11)
    (found,) = client.get(f"{BASE}/cases").json()["sets"]
    assert found["name"] == "support" and found["collection"] == "demo" and found["problem"] is None
    (one,) = found["cases"]
    assert one["relevant"] == [IDS[3], IDS[20]] and one["candidates"] == 11


def test_dartboard_eval_reads_it_and_finds_what_was_marked(client, tmp_path, capsys, monkeypatch):
    """Two questions over 40 passages: the first marks its nearest passage, the second its farthest."""
    monkeypatch.setenv("COLUMNS", "100")
    engine = client.app.state.service.engines.get("demo")
    for query, place in (("Why is my consumer slow?", 0), ("How do I rotate TLS certificates?", -1)):
        near = engine.collection.search_vector(engine.model.encode_query(query), 200, exact=True)
        order = [hit.id for hit in near if hit.id in IDS[:40]]
        save(client, query=query, relevant=[order[place]], candidates=IDS[:40])
    out = tmp_path / "home" / "reports" / "support"
    command = ["eval", "--dataset", "support", "--data", str(tmp_path / "home" / "cases"), "--out", str(out)]
    options = ["--systems", "cosine,oracle", "--metrics", "recall", "--k", "1,5", "--resamples", "100"]
    assert main([*command, *options, "--copies", "0", "--no-sigma-sweep", "--reference", "cosine"]) == 0
    record = json.loads((out / "results.json").read_text())["datasets"][0]
    assert (record["chunks"], record["judged"]) == (40, 2)
    recall = {
        name: [found[f"recall@{k}"]["mean"] for k in (1, 5)] for name, found in record["systems"].items()
    }
    assert recall == {"cosine": [0.5, 0.5], "oracle": [1.0, 1.0]}
    assert [one["name"] for one in client.get(f"{BASE}/reports").json()["reports"]] == ["support"]


def test_the_service_measures_with_it_too(client, tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_DATA", str(tmp_path / "none"))
    engine = client.app.state.service.engines.get("demo")
    query = "Why is my consumer slow?"
    nearest = engine.collection.search_vector(engine.model.encode_query(query), 1, exact=True)[0].id
    save(client, query=query, relevant=[nearest], candidates=IDS[:12])
    listed = {one["name"]: one for one in client.get(f"{BASE}/datasets").json()["datasets"]}
    assert (listed["support"]["num_queries"], listed["support"]["num_chunks"]) == (
        1,
        len({*IDS[:12], nearest}),
    )
    asked = {"dataset_name": "support", "metrics": ["recall@1"], "systems": ["cosine"], "background": True}
    answer = client.post(f"{BASE}/evaluate", json=asked)
    assert answer.status_code == 202, answer.text
    result = finished(client, answer.json())["result"]
    assert result["systems"]["cosine"] == {"recall@1": 1.0} and result["num_queries"] == 1
    save(client, query="Another?", relevant=[nearest], candidates=[])
    listed = {one["name"]: one for one in client.get(f"{BASE}/datasets").json()["datasets"]}
    assert listed["support"]["num_queries"] == 2
    assert len([name for name in listed if name.startswith("synthetic")]) == 3


def test_a_set_is_downloaded_as_a_folder(client, tmp_path):
    save(client)
    answer = client.get(f"{BASE}/cases/support.zip")
    assert answer.status_code == 200 and answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == 'attachment; filename="support.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == [f"support/{name}" for name in cases._FILES]
        archive.extractall(tmp_path / "data")
    assert len(load_beir(tmp_path / "data" / "support")) == 1
    assert client.get(f"{BASE}/cases/support.zip").content == answer.content
    for name in ("missing", "sup%00port", "support.zip"):
        assert client.get(f"{BASE}/cases/{name}.zip").status_code == 404
    assert client.get(f"{BASE}/cases/..%2fcases%2fsupport.zip").status_code in (404, 405)


def test_deleting_takes_the_passages_that_nobody_else_needs(client, tmp_path):
    first = save(client)
    second = save(client, query="Other?", relevant=[IDS[30]], candidates=IDS[8:12])
    gone = client.delete(f"{BASE}/cases/support/{first['query_id']}")
    assert gone.status_code == 204
    read = load_beir(tmp_path / "home" / "cases" / "support")
    assert [one.id for one in read.passages] == [*IDS[8:12], IDS[30]]
    assert list(read.qrels) == [second["query_id"]]
    assert client.delete(f"{BASE}/cases/support/{first['query_id']}").status_code == 404
    assert client.delete(f"{BASE}/cases/support/{second['query_id']}").status_code == 204
    assert client.get(f"{BASE}/cases").json() == {"sets": []}
    assert client.delete(f"{BASE}/cases/support/{second['query_id']}").status_code == 404
    assert not (tmp_path / "home" / "cases" / "support").exists()


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "../up"}, "name"),
        ({"name": ".hidden"}, "name"),
        ({"name": "a..b"}, "name"),
        ({"name": "a.zip"}, "name"),
        ({"name": "a."}, "name"),
        ({"name": "x" * 65}, "name"),
        ({"name": ""}, "name"),
        ({"name": "a\n"}, "name"),
        ({"query": "  "}, "query"),
        ({"relevant": []}, "relevant"),
        ({"relevant": [IDS[0], "nobody"]}, "relevant.1"),
        ({"candidates": ["nobody-knows-this"]}, "candidates.0"),
        ({"relevant": ["a\tb"]}, "relevant.0"),
        ({"relevant": [" a"]}, "relevant.0"),
        ({"more": 1}, "more"),
    ],
)
def test_bad_input_is_refused_without_an_echo(client, tmp_path, change, field):
    answer = client.post(f"{BASE}/cases", json=case(**change))
    assert answer.status_code == 422
    assert [one["field"] for one in answer.json()["errors"]] == [field]
    assert "nobody" not in answer.text
    assert not (tmp_path / "home" / "cases").exists()


def test_a_missing_collection_and_another_one(tmp_path):
    with running(tmp_path) as client:
        assert client.post(f"{BASE}/cases", json=case(collection="nothing")).status_code == 404
        save(client)
        engine = client.app.state.service.engines.get("notes")
        from dartboard.stores import Record

        engine.collection.upsert([Record("n1", "words", engine.model.encode_documents(["words"])[0], {})])
        other = client.post(f"{BASE}/cases", json=case(collection="notes", relevant=["n1"], candidates=[]))
        assert other.status_code == 409 and "another collection" in other.json()["detail"]


def test_scopes(tmp_path):
    path, who = keys_of(tmp_path)
    with running(tmp_path, collection=None, keys=path) as client:
        assert client.get(f"{BASE}/cases").status_code == 401
        assert client.post(f"{BASE}/cases", json=case()).status_code == 401
        assert client.post(f"{BASE}/cases", json=case(), headers=who["reader"]).status_code == 403
        saved = client.post(f"{BASE}/cases", json=case(), headers=who["writer"])
        assert saved.status_code == 201
        assert client.get(f"{BASE}/cases", headers=who["reader"]).status_code == 200
        assert client.get(f"{BASE}/cases/support.zip").status_code == 401
        gone = f"{BASE}/cases/support/{saved.json()['query_id']}"
        assert client.delete(gone, headers=who["reader"]).status_code == 403
        assert client.delete(gone, headers=who["writer"]).status_code == 204


class PowerCut(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, 2])
@pytest.mark.parametrize("change", ["save", "replace", "delete"])
def test_a_power_cut_at_any_step_leaves_a_set_that_can_be_read(tmp_path, monkeypatch, after, change):
    sets = CaseSets(tmp_path)
    texts = {f"c{n}": f"text {n}" for n in range(9)}
    sets.save("s", "demo", Case("one?", ["c1"], ["c1", "c2"]), texts)
    sets.save("s", "demo", Case("two?", ["c3"], ["c3", "c4"]), texts)
    replace, steps = cases._replace, []

    def cut(path, content):
        if len(steps) == after:
            raise PowerCut
        steps.append(path)
        replace(path, content)

    monkeypatch.setattr(cases, "_replace", cut)
    with pytest.raises(PowerCut):
        if change == "delete":
            sets.delete("s", query_id("one?"))
        else:
            sets.save("s", "demo", Case("new?" if change == "save" else "one?", ["c5"], ["c5"]), texts)
    read = load_beir(tmp_path / "cases" / "s")
    known = {one.id for one in read.passages}
    assert all(passage in known for row in read.qrels.values() for passage in row)
    assert query_id("two?") in read.qrels and set(read.queries) == set(read.qrels)
    monkeypatch.setattr(cases, "_replace", replace)
    found, _ = sets.save("s", "demo", Case("three?", ["c6"], []), texts)
    assert query_id("two?") in found.cases and query_id("three?") in found.cases


def test_a_set_that_somebody_spoiled_says_so_and_spoils_no_other(client, tmp_path):
    save(client)
    save(client, name="other")
    folder = tmp_path / "home" / "cases" / "support"
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "t"}\n')
    (tmp_path / "home" / "cases" / "half").mkdir()
    sets = {one["name"]: one for one in client.get(f"{BASE}/cases").json()["sets"]}
    assert set(sets) == {"other", "support"} and sets["other"]["problem"] is None
    assert sets["support"]["problem"].startswith("queries.jsonl, line 1")
    assert str(tmp_path) not in json.dumps(sets)


def test_links_are_no_sets(client, tmp_path):
    save(client)
    above = tmp_path / "home" / "cases"
    (above / "linked").symlink_to(above / "support")
    assert [one["name"] for one in client.get(f"{BASE}/cases").json()["sets"]] == ["support"]
    assert client.get(f"{BASE}/cases/linked.zip").status_code == 404


def test_a_set_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(cases, "MOST_PASSAGES", 2)
    sets = CaseSets(tmp_path)
    texts = {f"c{n}": "t" for n in range(5)}
    sets.save("s", "demo", Case("a", ["c1"], ["c2"]), texts)
    with pytest.raises(Exception, match="at most 2 passages"):
        sets.save("s", "demo", Case("b", ["c3"], []), texts)
    assert len(sets.read("s").corpus) == 2
    with pytest.raises(Exception, match="a name is"):
        sets.save("../s", "demo", Case("a", ["c1"], []), texts)
