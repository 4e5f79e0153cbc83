"""Who is let in: keys, scopes, limits, and wrong keys."""

import pytest
from starlette.testclient import TestClient

from dartboard.api import authentication
from dartboard.api.keys import Keys
from tests.api.small_app import BASE, small_app


@pytest.fixture
def keys(tmp_path):
    return Keys.open(tmp_path / "keys.json", create=True)


def client_of(keys=None, **options):
    return TestClient(small_app(keys=keys.path if keys else None, **options), base_url=BASE)


def bearer(secret):
    return {"Authorization": f"Bearer {secret}"}


def test_without_keys_everybody_here_may_write():
    client = client_of()
    answer = client.get("/read/a")
    assert answer.json() == {"key": None}
    assert client.post("/write", json={}).status_code == 200


def test_a_key_is_needed_and_may_come_in_two_headers(keys):
    client = client_of(keys)
    secret = keys.create("page", ["read"])
    refused = client.get("/read/a")
    assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Bearer")
    assert refused.json()["code"] == "unauthorized"
    expected = {"key": keys.find(secret).id}
    for headers in (
        bearer(secret),
        {"Authorization": f"bearer   {secret}"},
        {"X-API-Key": secret},
        {"X-API-Key": secret, **bearer(secret)},
    ):
        assert client.get("/read/a", headers=headers).json() == expected


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"Bearer",
        b"Bearer ",
        b"Basic abc",
        "Bearer schlüssel".encode(),
        b"Bearer \xff\xfe",
        b"Bearer " + b"a" * 5000,
        b"Bearer dbk_00000000_" + b"A" * 43,
    ],
)
def test_any_other_header_is_401_and_is_not_echoed(keys, value):
    answer = client_of(keys).get("/read/a", headers={"Authorization": value})
    assert answer.status_code == 401
    assert answer.json()["detail"] == "a valid key is needed: Authorization: Bearer KEY"
    assert "dbk_" not in answer.text and "aaaa" not in answer.text


def test_two_different_keys_are_refused(keys):
    first, second = keys.create("a", ["read"]), keys.create("b", ["read"])
    client = client_of(keys)
    answer = client.get("/read/a", headers={"X-API-Key": first, **bearer(second)})
    assert answer.status_code == 401 and "one key" in answer.json()["detail"]


def test_a_reader_may_not_write(keys):
    reads, writes = keys.create("page", ["read"]), keys.create("indexer", ["read", "write"])
    client = client_of(keys)
    refused = client.post("/write", json={}, headers=bearer(reads))
    assert refused.status_code == 403 and refused.json()["code"] == "forbidden"
    assert client.post("/write", json={}, headers=bearer(writes)).status_code == 200
    assert client.get("/read/a", headers=bearer(writes)).status_code == 200


def test_a_revoked_key_stops_at_once(keys):
    secret = keys.create("page", ["read"])
    client = client_of(keys)
    assert client.get("/read/a", headers=bearer(secret)).status_code == 200
    keys.revoke(keys.find(secret).id)
    assert client.get("/read/a", headers=bearer(secret)).status_code == 401


def test_limits_by_key(keys):
    slow, free = keys.create("slow", ["read"], rate=0.001), keys.create("free", ["read"])
    client = client_of(keys)
    assert client.get("/read/a", headers=bearer(slow)).status_code == 200
    refused = client.get("/read/a", headers=bearer(slow))
    assert refused.status_code == 429 and refused.json()["code"] == "rate_limited"
    assert 1 <= int(refused.headers["retry-after"]) <= 1000
    assert [client.get("/read/a", headers=bearer(free)).status_code for _ in range(50)] == [200] * 50
    assert 'dartboard_rejected_total{reason="rate_limited"} 1.0' in metrics_of(client)


def test_without_keys_the_limit_is_by_address_and_of_several_processes_a_share():
    for options, allowed in (({"rate": 0.001}, 1), ({"rate": 4, "processes": 2}, 2)):
        client = client_of(**options)
        codes = [client.get("/read/a").status_code for _ in range(allowed + 1)]
        assert codes == [200] * allowed + [429]


def test_many_wrong_keys_are_slowed_down_and_a_right_one_is_not(keys):
    client = client_of(keys)
    secret = keys.create("page", ["read"])
    codes = [
        client.get("/read/a", headers=bearer(f"wrong {n}")).status_code
        for n in range(authentication.FAILURES + 2)
    ]
    assert codes == [401] * authentication.FAILURES + [429] * 2
    assert client.get("/read/a", headers=bearer(secret)).status_code == 200
    assert 'reason="unauthorized"} 12.0' in metrics_of(client)


def test_requests_without_a_key_count_as_wrong_ones(keys):
    client = client_of(keys)
    codes = [client.get("/read/a").status_code for _ in range(authentication.FAILURES + 1)]
    assert codes == [401] * authentication.FAILURES + [429]


def test_the_documentation_names_both_headers(keys):
    document = client_of(keys).get("/openapi.json").json()
    assert {scheme["type"] for scheme in document["components"]["securitySchemes"].values()} == {
        "http",
        "apiKey",
    }
    assert len(document["paths"]["/write"]["post"]["security"]) == 2


def metrics_of(client):
    return client.app.state.service.metrics.render().decode()
