"""Further questions as chips, and follow-ups: which question a pick serves, and what was seen already."""

import json
import shutil
import subprocess

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo
from tests.web.test_playground_access import CONTRAST
from tests.web.test_playground_steps import percent

FIRST = demo.questions()[0].text
ADD = "How do I add consumers?"
REBALANCE = "What is a rebalance?"
SHADES = """() => [...document.querySelectorAll(".spot")].map((one) => ({
  index: Number(one.dataset.index),
  seen: one.classList.contains("seen"),
  pick: one.classList.contains("pick"),
  dot: Number(one.querySelector(".dot").getAttribute("r")),
  shade: Number(one.querySelector(".shade").getAttribute("r")),
}))"""


def ready(page):
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")


def add(page, *questions):
    for text in questions:
        page.locator("#also").fill(text)
        page.locator("#also").press("Enter")
        expect(page.locator("#also-list .part-text").last).to_have_text(text[:139])
        ready(page)


def picked(page):
    cards = page.locator(".column.dartboard .card")
    return [int(index) for index in cards.evaluate_all("all => all.map((one) => one.dataset.index)")]


def test_picks_carry_the_question_that_they_serve(page, served):
    add(page, ADD, REBALANCE)
    found = served.explore(FIRST, also=[ADD, REBALANCE])
    expect(page.locator("#also-list .tag")).to_have_text(["Q1", "Q2", "Q3"])
    for method, facts in found["methods"].items():
        tags = page.locator(f".column.{method} .card-note .tag")
        expect(tags).to_have_text([f"Q{at + 1}" for at in facts["serves"]])
    chosen = found["methods"]["dartboard"]
    assert picked(page) == chosen["picks"]
    expect(page.locator(".gain .tag")).to_have_text([f"Q{at + 1}" for at in chosen["serves"]])
    told = [f"covered {percent(share)}" for share in chosen["question_coverage"]]
    expect(page.locator(".part-meter")).to_have_text(told)
    colour = "one => getComputedStyle(one).borderTopColor"
    chips = [page.locator("#also-list .tag").nth(at).evaluate(colour) for at in range(3)]
    notes = page.locator(".column.dartboard .card-note .tag")
    assert [notes.nth(at).evaluate(colour) for at in range(5)] == [chips[at] for at in chosen["serves"]]
    page.locator(".column.dartboard .card-name").nth(1).click()
    expect(page.locator("#why-verdict")).to_contain_text(f"It serves question {chosen['serves'][1] + 1} most")
    label = page.locator(f".spot[data-index='{chosen['picks'][1]}']").get_attribute("aria-label")
    assert f"Pick 2, for question {chosen['serves'][1] + 1}" in label


def test_chips_come_and_go_by_mouse_and_keyboard(page):
    parts = page.locator("#also-list .part-text")
    page.locator("#also-add").click()
    expect(page.locator("#also")).to_be_focused()
    page.keyboard.type(ADD)
    page.locator("#also-add").click()
    expect(parts).to_have_text([FIRST, ADD])
    add(page, REBALANCE)
    page.locator("#also").fill(ADD)  # a question that is there already is not asked twice
    page.keyboard.press("Enter")
    expect(page.locator("#also")).to_have_value("")
    expect(parts).to_have_count(3)
    page.get_by_role("button", name=f"Remove question 2: {ADD}").click()
    expect(parts).to_have_text([FIRST, REBALANCE])
    expect(page.get_by_role("button", name="Remove question 2")).to_be_focused()
    page.keyboard.press("Delete")
    expect(page.locator("#also-list")).to_be_hidden()
    expect(page.locator("#also")).to_be_focused()
    expect(page.locator(".card .tag")).to_have_count(0)
    add(page, ADD)
    page.locator("#also").press("Backspace")
    expect(page.locator("#also-list")).to_be_hidden()
    page.locator("#also").fill(ADD)  # typed and not added yet: the big button takes it along
    page.locator("#go").click()
    expect(parts).to_have_text([FIRST, ADD])


def test_a_link_and_the_way_back(page, open_page):
    add(page, ADD)
    page.locator("#follow-up").click()
    expect(page.locator("#seen")).to_contain_text("5 passages seen")
    ready(page)
    picks = picked(page)
    other = open_page()
    other.goto(page.url)
    other.wait_for_selector(".card")
    expect(other.locator("#also-list .part-text")).to_have_text([FIRST, ADD])
    expect(other.locator("#seen")).to_contain_text("5 passages seen")
    assert picked(other) == picks
    page.go_back()
    expect(page.locator("#seen")).to_be_hidden()
    expect(page.locator("#also-list .part-text")).to_have_text([FIRST, ADD])
    page.go_back()
    expect(page.locator("#also-list")).to_be_hidden()


def test_a_follow_up_gets_what_is_new(page, served):
    before = served.explore(FIRST)
    shown = [before["candidates"][pick]["id"] for pick in before["methods"]["dartboard"]["picks"]]
    page.locator("#follow-up").click()
    expect(page.locator("#verdict")).to_contain_text("new")
    expect(page.locator("#query")).to_be_focused()
    found = served.explore(FIRST, seen=shown)
    chosen = found["methods"]["dartboard"]
    assert picked(page) == chosen["picks"] and not set(picked(page)) & set(found["seen"])
    expect(page.locator("#covered-before")).to_have_text(f"{percent(chosen['covered_before'])} seen")
    width = page.locator(".mass-bar .mass-seen").get_attribute("width")
    assert float(width.rstrip("%")) == pytest.approx(100 * chosen["covered_before"], abs=0.1)
    expect(page.locator(".meter.coverage .mass-seen")).to_have_count(3)
    expect(page.locator("#map-seen")).to_contain_text("Grey")
    spots = page.evaluate(SHADES)
    assert {one["index"] for one in spots if one["seen"]} == set(found["seen"])
    for one in spots:  # the grey area is the probability that is covered
        share = 0 if one["pick"] else found["seen_cover"][one["index"]]
        assert one["shade"] == pytest.approx(one["dot"] * share**0.5, abs=0.02)
    page.locator("#query").fill("How do I find partition skew?")
    page.locator("#query").press("Enter")
    expect(page.locator("#verdict")).to_contain_text("what was seen")
    page.get_by_role("button", name="Forget what was seen").click()
    expect(page.locator("#seen")).to_be_hidden()
    ready(page)
    expect(page.locator(".mass-seen")).to_have_count(0)
    expect(page.locator("#follow-up")).to_be_focused()


def test_one_passage_can_count_as_seen(page):
    name = page.locator(".column.dartboard .card-name").first.inner_text()
    page.locator(".column.dartboard .card-name").first.click()
    page.locator("#why-seen").click()
    expect(page.locator("#seen")).to_contain_text("1 passage seen")
    expect(page.locator("#why-verdict")).to_contain_text("It counts as seen")
    expect(page.locator(".column.dartboard .card-name").first).not_to_have_text(name)
    page.locator("#why-seen").click()
    expect(page.locator("#seen")).to_be_hidden()
    expect(page.locator(".column.dartboard .card-name").first).to_have_text(name)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl to run the copied command")
def test_the_copied_command_asks_the_same(page):
    add(page, ADD)
    page.locator("#follow-up").click()
    expect(page.locator("#seen")).to_be_visible()
    ready(page)
    page.locator("#copy-curl").click()
    expect(page.locator("#copy-curl")).to_have_text("Copied")
    command = page.evaluate("navigator.clipboard.readText()").replace("curl ", "curl -sS ", 1)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert [one["text"] for one in answer["questions"]] == [FIRST, ADD] and answer["covered_before"] > 0
    serves = [f"Q{hit['serves'] + 1}" for hit in answer["results"]]
    expect(page.locator(".column.dartboard .card-note .tag")).to_have_text(serves)


def test_a_ready_question_begins_anew(page):
    add(page, ADD)
    page.locator("#follow-up").click()
    expect(page.locator("#seen")).to_be_visible()
    page.locator("#questions button").nth(1).click()
    expect(page.locator("#seen")).to_be_hidden()
    expect(page.locator("#also-list")).to_be_hidden()


def test_what_is_seen_and_gone_can_be_forgotten(open_page, served):
    page = open_page(expect_errors=True)
    page.goto(f"{served.url}/#q=Why+do+consumers+lag%3F&seen=nobody")
    expect(page.locator("#problem")).to_contain_text("check seen")
    page.get_by_role("button", name="Forget what was seen").click()
    page.wait_for_selector(".card")
    expect(page.locator("#problem")).to_be_hidden()


@pytest.mark.parametrize(("width", "scheme"), [(380, "light"), (1100, "dark")])
def test_many_and_long_questions_break_nothing(open_page, served, width, scheme):
    hostile = '<img src=x onerror="window.watched.ran += 1"> ' + "w" * 400
    texts = [
        hostile,
        "\u202e backwards " + "long " * 200,
        *(f"Why does it lag, number {at}?" for at in range(13)),
    ]
    page = open_page(width=width, color_scheme=scheme)
    page.goto(served.url)
    page.wait_for_selector(".card:visible")
    page.evaluate(
        "all => (location.hash = new URLSearchParams([['q', 'lag?'], ...all.map((one) => ['also', one])]))",
        texts,
    )
    expect(page.locator("#also-list .part-meter")).to_have_count(16)
    ready(page)
    expect(page.locator("#also")).to_be_disabled()
    page.locator("#follow-up").click()
    expect(page.locator("#verdict")).to_contain_text("what was seen")
    ready(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rights = page.locator(".part, .tag").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().right)"
    )
    assert max(rights) <= width
    heights = page.locator(".part").evaluate_all(
        "all => all.map((one) => one.getBoundingClientRect().height)"
    )
    assert max(heights) < 40
    assert page.evaluate("window.watched") == {"violations": [], "ran": 0}
    page.mouse.move(0, 0)
    assert page.evaluate(CONTRAST) == []
