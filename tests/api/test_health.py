"""Signs of life, what is served, the pages, and what a browser on another site may do."""

from dartboard.version import __version__
from tests.api.core_app import BASE, refused, retrieve, running
from tests.api.pages_app import keys_of


def test_health_as_the_specification_has_it(tmp_path):
    with running(tmp_path) as client:
        found = client.get(f"{BASE}/health").json()
        assert {
            "status": "healthy",
            "version": __version__,
            "embedding_model": "all-MiniLM-L6-v2",
            "corpus_size": 150,
        }.items() <= found.items()
        assert str(tmp_path) not in str(found)
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ready"}
        client.app.state.service.engines.ready = False
        refused(client.get("/readyz"), 503, "not ready")


def test_probes_may_ask_for_the_head_alone(tmp_path):
    path, headers = keys_of(tmp_path)
    with running(tmp_path, keys=path, demo=False) as client:
        for place in ("/healthz", "/readyz", "/metrics", f"{BASE}/health"):
            answer = client.head(place, headers=headers["reader"])
            assert (answer.status_code, answer.content) == (200, b""), place
            assert (
                answer.headers["content-type"]
                == client.get(place, headers=headers["reader"]).headers["content-type"]
            )
        assert client.head("/metrics").status_code == 401
        client.app.state.service.engines.ready = False
        assert client.head("/readyz").status_code == 503


def test_keys_guard_what_is_not_public(tmp_path):
    path, headers = keys_of(tmp_path)
    with running(tmp_path, keys=path) as client:
        for place in ("/healthz", "/readyz", "/", "/docs", "/openapi.json", "/static/app.css"):
            assert client.get(place).status_code == 200, place
        for place in (
            "/metrics",
            f"{BASE}/health",
            f"{BASE}/collections",
            f"{BASE}/datasets",
            f"{BASE}/questions",
        ):
            refused(client.get(place), 401)
            assert client.get(place, headers=headers["reader"]).status_code == 200, place
        refused(client.put(f"{BASE}/collections/a", headers=headers["reader"]), 403)
        assert client.put(f"{BASE}/collections/a", headers=headers["writer"]).status_code == 201
        refused(
            client.post(f"{BASE}/retrieve", content=b"{", headers={"content-type": "application/json"}), 401
        )


def test_pages(tmp_path):
    with running(tmp_path, demo=False) as client:
        page = client.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert client.get("/static/app.css").headers["content-type"].startswith("text/css")
        refused(client.get("/static/../settings.py"), 404)
        refused(client.get("/static/%2e%2e/settings.py"), 404)
        refused(client.get("/redoc"), 404)
        refused(client.get("/static"), 404)
        refused(client.get("/static/"), 404)
        refused(client.get("/static//etc/passwd"), 404)
        again = client.get(
            "/static/app.css", headers={"if-none-match": client.get("/static/app.css").headers["etag"]}
        )
        assert again.status_code == 304
        assert client.head("/").status_code == 200


def test_other_sites_may_call_only_where_that_is_configured(tmp_path):
    asked = {"origin": "https://search.example.org", "access-control-request-method": "POST"}
    with running(tmp_path, demo=False) as client:
        assert client.options(f"{BASE}/retrieve", headers=asked).status_code == 403
    with running(tmp_path, demo=False, origins=("https://search.example.org",)) as client:
        allowed = client.options(f"{BASE}/retrieve", headers=asked)
        assert allowed.status_code == 200
        assert allowed.headers["access-control-allow-origin"] == "https://search.example.org"
        other = client.options(f"{BASE}/retrieve", headers=asked | {"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers


def test_nothing_is_served_when_it_has_stopped(tmp_path):
    with running(tmp_path) as client:
        assert retrieve(client).status_code == 200
    refused(retrieve(client), 503)
