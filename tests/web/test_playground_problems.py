"""What the reader is told when the service says no, waits, stops, or is not there."""

import asyncio

from playwright.sync_api import expect

from dartboard.api.keys import Keys
from tests.web.serving import serving


def test_a_key_is_asked_for_and_kept_in_the_tab(open_page, tmp_path):
    path = tmp_path / "keys.json"
    secret = Keys.open(path, create=True).create("reader", ["read"])
    with serving(tmp_path, keys=path) as service:
        page = open_page(expect_errors=True)
        page.goto(service.url)
        expect(page.locator("#key-form")).to_be_visible()
        expect(page.locator(".key-said")).to_contain_text("asks for an API key")
        expect(page.locator("#api-key")).to_be_focused()
        page.locator("#api-key").fill("dbk_00000000_wrong")
        page.keyboard.press("Enter")
        expect(page.locator(".key-said")).to_contain_text("does not accept this key")
        page.locator("#api-key").fill(secret)
        page.keyboard.press("Enter")
        page.wait_for_selector(".card")
        expect(page.locator("#key-form")).to_be_hidden()
        assert page.evaluate("sessionStorage.getItem('dartboard-key')") == secret
        assert page.evaluate("Object.values(localStorage).join()").find(secret) < 0
        assert secret not in page.url
        page.locator("#copy-curl").click()
        expect(page.locator("#copy-curl")).to_have_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert "$DARTBOARD_KEY" in copied
        assert secret not in copied
        page.locator(".marker").first.click()
        page.get_by_role("button", name="Save as evaluation case").click()
        expect(page.locator(".case-said")).to_contain_text("no write access")
        page.reload()
        page.wait_for_selector(".card")


def test_a_wrong_filter_is_explained_and_the_view_stays(open_page, served):
    page = open_page(expect_errors=True)
    page.goto(served.url)
    page.wait_for_selector(".card")
    page.locator("#more summary").click()
    page.locator("#filter").fill("theme ===")
    page.locator("#filter").press("Enter")
    expect(page.locator("#problem")).to_contain_text("The service cannot work with this: filter")
    assert page.locator("#problem").inner_text().count("filter") == 1
    assert page.locator(".card").count() == 15
    page.locator("#filter").fill("")
    page.locator("#filter").press("Enter")
    expect(page.locator("#problem")).to_be_hidden()


def test_too_many_requests(open_page, tmp_path):
    with serving(tmp_path) as service:
        page = open_page(expect_errors=True)
        page.goto(service.url)
        page.wait_for_selector(".card")
        object.__setattr__(service.app.state.service.settings, "rate", 0.01)
        for place in ("100", "300", "500", "700"):
            with page.expect_response("**/explore"):
                page.locator("#sigma-range").fill(place)
        expect(page.locator("#problem")).to_contain_text("limit is reached")
        expect(page.locator("#problem")).to_contain_text("Try again in")


def test_out_of_time(open_page, tmp_path):
    with serving(tmp_path) as service:
        page = open_page(expect_errors=True)
        page.goto(service.url)
        page.wait_for_selector(".card")
        service.app.state.service.searches._seconds = 1e-4  # timing: has to run out
        page.locator("#go").click()
        expect(page.locator("#problem")).to_contain_text("ran out of time")


def test_stopping(open_page, tmp_path):
    with serving(tmp_path) as service:
        page = open_page(expect_errors=True)
        page.goto(service.url)
        page.wait_for_selector(".card")
        searches = service.app.state.service.searches
        asyncio.run_coroutine_threadsafe(searches.stop(0.0), service.loop).result(60)
        page.locator("#go").click()
        expect(page.locator("#problem")).to_contain_text("starting, stopping")


def test_no_answer_at_all(open_page, served):
    page = open_page(expect_errors=True)
    page.goto(served.url)
    page.wait_for_selector(".card")
    page.context.set_offline(True)
    page.locator("#go").click()
    expect(page.locator("#problem")).to_contain_text("does not answer")
    assert page.locator(".card").count() == 15
    page.context.set_offline(False)
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#problem")).to_be_hidden()


def test_an_unknown_collection(open_page, served):
    page = open_page(expect_errors=True)
    page.goto(f"{served.url}/#q=anything&c=nowhere")
    expect(page.locator("#problem")).to_be_visible()
    expect(page.locator("#collection")).to_have_value("nowhere")
