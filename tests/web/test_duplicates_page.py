"""The page for duplicates, in a real browser."""

import pytest

from tests.web.serving import add_documents
from tests.web.test_pages import no_sideways_scrolling

FEE = "The monthly fee of the basic plan is 5 euros for every user, and it is billed at the end of the month."
HOSTILE = "<img src=x onerror=window.watched.ran=1> "

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (380, "dark")])
def test_it_shows_copies_and_how_they_differ(open_page, served, width, scheme):
    name = f"fees-{width}"
    add_documents(served, name, [("a", HOSTILE + FEE), ("b", HOSTILE + FEE + " Ask us."), ("c", "Tea.")])
    page = open_page(width=width, color_scheme=scheme)
    page.goto(f"{served.url}/duplicates")
    page.wait_for_selector(f"#collection option[value='{name}']", state="attached")
    page.select_option("#collection", name)
    page.click("#start")
    page.wait_for_selector(".group")
    expect(page.locator(".answer")).to_contain_text("with dartboard")
    assert "2 passages, nearly the same words" in page.inner_text(".group")
    assert page.locator(".group ins").inner_text() == "Ask us."
    assert page.evaluate("window.watched.ran") == 0 and page.locator(".group img").count() == 0
    assert f"--collection '{name}' --delete" in page.inner_text("#found .command")
    assert no_sideways_scrolling(page)


def test_an_empty_collection_is_a_clear_message(open_page, served):
    add_documents(served, "empty-one", [])
    page = open_page()
    page.goto(f"{served.url}/duplicates")
    page.wait_for_selector("#collection option[value='empty-one']", state="attached")
    page.select_option("#collection", "empty-one")
    page.uncheck("#vectors")
    page.click("#start")
    expect(page.locator("#job .problem")).to_contain_text("there are no chunks")
