"""What browsers are told, and which of their requests are let in."""

import pytest
from starlette.testclient import TestClient

from tests.api.small_app import BASE, small_app


@pytest.fixture(scope="module")
def client():
    return TestClient(small_app(), base_url=BASE)


def test_every_answer_has_the_headers(client):
    for answer in (
        client.get("/read/a"),
        client.get("/nothing"),
        client.post("/write", content=b"{"),
        client.get("/read/a", headers={"Host": "evil.example"}),
    ):
        headers = answer.headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy and "base-uri 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "geolocation=()" in headers["permissions-policy"]
        assert headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in headers
        assert not any(name.startswith("access-control") for name in headers)


def test_an_endpoint_may_be_stricter_itself(client):
    assert client.get("/plain").headers.get_list("content-security-policy") == ["sandbox"]


def test_pages_may_be_kept_and_are_asked_for_again(client):
    assert client.get("/static/app.js").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "localhost:8000",
        "127.0.0.1",
        "127.0.0.1:9",
        "[::1]",
        "[::1]:80",
        "LOCALHOST",
        "127.1.2.3",
    ],
)
def test_names_of_this_machine_are_let_in(client, host):
    assert client.get("/read/a", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example:8000", 421),
        ("192.168.1.5", 421),
        ("", 400),
        ("a/b", 400),
        ("user@localhost", 400),
        ("[::1", 400),
        ("[zz]", 400),
        ("ä", 421),
    ],
)
def test_other_hosts_are_refused_without_an_echo(client, host, status):
    answer = client.get("/read/a", headers={"Host": host.encode("latin-1")})
    assert answer.status_code == status
    assert answer.json()["code"] == {421: "wrong_host", 400: "bad_host"}[status]
    assert "evil" not in answer.text


def test_two_hosts_are_none(client):
    answer = client.get("/read/a", headers=[("Host", "localhost"), ("Host", "127.0.0.1")])
    assert answer.status_code == 400


def test_configured_hosts_are_let_in_and_no_others():
    client = TestClient(small_app(host="0.0.0.0", hosts=("search.example",)), base_url=BASE)
    codes = [
        client.get("/read/a", headers={"Host": host}).status_code
        for host in ("search.example", "Search.Example:443", "localhost", "other.example")
    ]
    assert codes == [200, 200, 200, 421]


def test_beyond_loopback_without_names_any_host_is_taken():
    client = TestClient(small_app(host="0.0.0.0"), base_url=BASE)
    assert client.get("/read/a", headers={"Host": "search.example"}).status_code == 200


def test_an_address_bound_by_name_is_let_in():
    client = TestClient(small_app(host="::1"), base_url=BASE)
    assert client.get("/read/a", headers={"Host": "[::1]:8000"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({"Origin": "http://127.0.0.1"}, True),
        ({"Origin": "http://localhost:3000"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://127.0.0.1.evil.example"}, False),
        ({"Origin": "file://127.0.0.1"}, False),
        ({"Origin": "http://[::1"}, False),
        ({"Origin": ""}, False),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, True),
        ({"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, True),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, False),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, False),
    ],
)
def test_pages_of_other_sites_are_refused(client, headers, allowed):
    answer = client.get("/read/a", headers=headers)
    assert answer.status_code == (200 if allowed else 403)
    assert allowed or answer.json()["code"] == "foreign_origin"


def test_a_form_of_another_site_cannot_post(client):
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert client.post("/write", json={}, headers=headers).status_code == 403
    headers = {"Origin": "https://evil.example", "content-type": "text/plain"}
    assert client.post("/write", content=b"{}", headers=headers).status_code == 403


def test_configured_origins_are_let_in():
    client = TestClient(small_app(origins=("https://app.example/",)), base_url=BASE)
    assert client.get("/read/a", headers={"Origin": "https://app.example"}).status_code == 200
    assert client.get("/read/a", headers={"Origin": "https://app.example.evil"}).status_code == 403
