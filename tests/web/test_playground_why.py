"""Why not this one: gains at each step, the pick that took its place, the words they share."""

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo

FIRST = demo.questions()[0].text


@pytest.fixture
def answer(served):
    return served.explore(FIRST)


def left_out(answer):
    picks = answer["methods"]["dartboard"]["picks"]
    return next(
        index
        for index in answer["methods"]["top_k"]["picks"]
        if index not in picks and answer["cover"][index] >= 0.5
    )


def test_a_redundant_passage_names_its_pick(page, answer):
    index = left_out(answer)
    picks = answer["methods"]["dartboard"]["picks"]
    owner = picks.index(answer["covered_by"][index]) + 1
    page.locator(f".column.top_k .card[data-index='{index}'] .card-name").click()
    why = page.locator("#why")
    expect(why.locator("#why-title")).to_have_text("Why not this one?")
    expect(why.locator("#why-verdict")).to_contain_text(f"Pick {owner} already says it")
    expect(why.locator("#compare")).to_have_value(str(owner - 1))
    heights = "all => all.map((one) => parseFloat(one.getAttribute('height')))"
    bars = why.locator(".why-own").evaluate_all(heights)
    gains = [step["gains"][index] for step in answer["steps"]]
    most = max(*gains, *(step["gain"] for step in answer["steps"]))
    assert bars == pytest.approx([96 * (gain / most) ** 0.5 for gain in gains], rel=1e-3)


def test_words_that_differ_are_marked(page, answer):
    index = left_out(answer)
    page.locator(f".column.top_k .card[data-index='{index}'] .card-name").click()
    sides = page.locator("#why .diff-side .diff-text")
    assert sides.nth(0).inner_text().split() == answer["candidates"][index]["text"].split()
    assert sides.nth(0).locator("mark").count() + sides.nth(1).locator("mark").count() > 0
    expect(page.locator("#diff-share")).to_contain_text("of its words stand in pick")
    page.locator("#compare").select_option("1")
    other = answer["candidates"][answer["methods"]["dartboard"]["picks"][1]]
    assert sides.nth(1).inner_text().split() == other["text"].split()


def test_a_pick_says_why(page, answer):
    page.locator(".column.dartboard .card-name").first.click()
    expect(page.locator("#why-title")).to_have_text("Why is this pick 1?")
    expect(page.locator("#why-verdict")).to_contain_text("most probable target")
    page.locator(".column.dartboard .card-name").nth(2).evaluate("one => one.click()")
    expect(page.locator("#why-title")).to_have_text("Why is this pick 3?")


def test_an_unlike_passage_added_too_little(page, answer):
    picks = answer["methods"]["dartboard"]["picks"]
    index = next(
        at for at, cover in reversed(list(enumerate(answer["cover"]))) if cover < 0.5 and at not in picks
    )
    page.locator(f".spot[data-index='{index}']").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#why-verdict")).to_contain_text("would have added too little")


def test_escape_closes_and_gives_the_focus_back(page):
    name = page.locator(".column.top_k .card-name").nth(2)
    name.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#why")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#why")).to_be_hidden()
    expect(name).to_be_focused()


def test_it_follows_sigma(page, answer):
    index = left_out(answer)
    page.locator(f".column.top_k .card[data-index='{index}'] .card-name").click()
    before = page.locator("#why-verdict").inner_text()
    page.locator("#sigma-range").evaluate(
        "range => { range.value = '60'; range.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    expect(page.locator("#why-verdict")).not_to_have_text(before)
