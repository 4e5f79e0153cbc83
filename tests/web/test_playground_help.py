"""A "?" beside a term shows one sentence, to the pointer and to the keyboard."""

import pytest
from playwright.sync_api import expect

PLACES = {
    "#sigma-bar": "σ is how far from the question",
    ".map-note .help:nth-of-type(1)": "P(t|q) is the probability",
    ".map-note .help:nth-of-type(3)": "Stress is how much",
    "#strip-panel": "Each row is a passage",
    ".column.top_k .card:first-child": "P(t|q) is the probability",
}


@pytest.mark.parametrize("width", [1440, 390])
def test_each_term_is_explained_in_sight(open_page, served, width):
    page = open_page(width=width)
    page.goto(served.url)
    page.wait_for_selector(".card:visible")
    if width < 860:
        page.locator("#tab-top_k").click()
    for place, begins in PLACES.items():
        mark = page.locator(f"{place} .help-mark").first
        text = page.locator(f"{place} .help-text").first
        expect(text).to_be_hidden()
        mark.click()
        expect(text).to_be_visible()
        expect(text).to_contain_text(begins)
        assert text.inner_text().count(". ") == 0  # one sentence
        box = text.bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= width
        assert box["y"] >= 0 and box["y"] + box["height"] <= 900
        page.keyboard.press("Escape")
        expect(text).to_be_hidden()
    assert page.locator("#why").is_hidden()


def test_the_keyboard_opens_it_and_assistive_technology_hears_it(page):
    mark = page.locator("#sigma-bar .help-mark")
    mark.focus()
    page.keyboard.press("Enter")
    text = page.locator("#sigma-bar .help-text")
    expect(text).to_be_visible()
    expect(page.locator("#live")).to_have_text(text.inner_text())
    expect(mark).to_have_accessible_name("What does “σ” mean?")
    page.keyboard.press("Enter")
    expect(text).to_be_hidden()
    expect(mark).to_be_focused()


def test_one_is_open_at_a_time_and_a_click_elsewhere_closes_it(page):
    page.locator("#sigma-bar .help-mark").click()
    page.locator(".map-note .help-mark").last.click()
    expect(page.locator(".help-text:popover-open")).to_have_count(1)
    expect(page.locator(".map-note .help-text").last).to_be_visible()
    page.locator("#verdict").click()
    expect(page.locator(".help-text:popover-open")).to_have_count(0)


def test_escape_closes_the_sentence_before_the_panel(page):
    page.locator(".column.top_k .card-name").nth(1).click()
    why = page.locator("#why")
    why.locator(".help-mark").click()
    expect(why.locator(".help-text")).to_be_visible()
    page.keyboard.press("Escape")
    expect(why.locator(".help-text")).to_be_hidden()
    expect(why).to_be_visible()
    page.keyboard.press("Escape")
    expect(why).to_be_hidden()
