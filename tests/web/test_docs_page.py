"""/docs: Swagger UI from the service's own files, under the policy of the other pages."""

import hashlib
import re

import pytest

from dartboard.api.keys import Keys
from dartboard.web import static_folder
from tests.web.serving import serving

expect = pytest.importorskip("playwright.sync_api").expect

BUNDLED = static_folder() / "swagger-ui"
RETRIEVE = "#operations-retrieve-retrieve"


def open_operation(page, url, operation=RETRIEVE):
    page.goto(f"{url}/docs")
    page.locator(f"{operation} .opblock-summary-control").click()


def test_the_page_lists_every_operation_and_asks_nobody_else(open_page, served):
    page = open_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{served.url}/docs")
    page.wait_for_selector(".opblock")
    described = served.app.openapi()["paths"].values()
    expect(page.locator(".opblock")).to_have_count(sum(map(len, described)))
    assert [url for url in asked if not url.startswith((f"{served.url}/", "data:"))] == []
    expect(page.locator("nav [aria-current]")).to_have_text("API")


def test_an_operation_can_be_tried_and_a_phone_does_not_scroll_sideways(open_page, served):
    page = open_page(width=390)
    open_operation(page, served.url)
    page.wait_for_selector(f"{RETRIEVE} .opblock-body")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    operation = page.locator(RETRIEVE)
    operation.locator(".try-out__btn").click()
    operation.locator("textarea").fill('{"query": "Why are our consumers falling behind?", "top_k": 2}')
    operation.locator(".execute").click()
    answer = operation.locator(".live-responses-table")
    expect(answer.locator("tbody td.response-col_status").first).to_contain_text("200")
    expect(answer).to_contain_text("chunk_id")


def test_the_key_of_the_tab_is_used_and_written_nowhere(open_page, tmp_path):
    path = tmp_path / "keys.json"
    secret = Keys.open(path, create=True).create("reader", ["read"])
    with serving(tmp_path, keys=path) as locked:
        page = open_page(expect_errors=True)
        page.goto(f"{locked.url}/healthz")
        page.evaluate("key => sessionStorage.setItem('dartboard-key', key)", secret)
        listing = "#operations-collections-list_collections"
        open_operation(page, locked.url, listing)
        page.locator(f"{listing} .try-out__btn").click()
        page.locator(f"{listing} .execute").click()
        status = page.locator(f"{listing} .live-responses-table tbody td.response-col_status").first
        expect(status).to_contain_text("200")
        assert secret not in page.evaluate("Object.values(localStorage).join()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_is_that_of_the_other_pages(open_page, served, scheme):
    page = open_page(color_scheme=scheme)
    page.goto(f"{served.url}/docs")
    page.wait_for_selector(".opblock")
    dark = "document.documentElement.classList.contains('dark-mode')"
    assert page.evaluate(dark) is (scheme == "dark")
    page.locator(".theme").click()
    assert page.evaluate(dark) is (scheme != "dark")


def test_the_bundled_files_are_those_of_the_release():
    said = dict(
        re.findall(r"^\| `(.+)` \| `([0-9a-f]{64})` \|$", (BUNDLED / "README.md").read_text(), re.MULTILINE)
    )
    assert set(said) == {"swagger-ui-bundle.js", "swagger-ui.css"}
    for name, wanted in said.items():
        assert hashlib.sha256((BUNDLED / name).read_bytes()).hexdigest() == wanted, name
