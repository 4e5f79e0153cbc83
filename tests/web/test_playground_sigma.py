"""σ: the slider selects again, the automatic value is marked, the strip shows who survives."""

import json
import math
import re
import time

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo
from tests.web.serving import pick_names

FIRST = demo.questions()[0].text


def place(sigma, value):
    return math.log(value / sigma["low"]) / math.log(sigma["high"] / sigma["low"])


def hold_first(page):
    """The first request from now on waits in the list that is returned; later ones go through."""
    held = []
    page.route("**/explore", lambda route: route.continue_() if held else held.append(route))
    return held


@pytest.fixture
def answer(served):
    return served.explore(FIRST)


def test_the_slider_selects_again_without_map_or_sweep(page, served, answer):
    asked = []
    page.on("request", lambda request: asked.append(request) if "explore" in request.url else None)
    page.locator("#sigma-range").fill("200")
    expect(page.locator(".sigma-source")).to_have_text(
        re.compile(r"^set by hand, \d+ near-duplicates removed$")
    )
    page.wait_for_timeout(50)  # timing: no other request may follow
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    bodies = [json.loads(request.post_data) for request in asked]
    assert bodies and all(not body["layout"] and not body["sweep"] for body in bodies)
    sigma = bodies[-1]["sigma"]
    low, high = answer["sigma"]["low"], answer["sigma"]["high"]
    assert sigma == pytest.approx(low * (high / low) ** 0.2, rel=1e-3)
    fresh = served.explore(FIRST, sigma=sigma)
    expect(page.locator(".column.dartboard .card-name")).to_have_text(pick_names(fresh, "dartboard"))
    assert pick_names(fresh, "dartboard") != pick_names(answer, "dartboard")


def test_auto_is_marked_and_one_click_away(page, answer):
    sigma = answer["sigma"]
    expect(page.locator("#sigma-auto")).to_be_disabled()
    track = page.locator("#sigma-range").bounding_box()
    tick = page.locator(".auto-tick").bounding_box()
    wanted = track["x"] + 8 + (track["width"] - 16) * place(sigma, sigma["auto"])
    assert tick["x"] + tick["width"] / 2 == pytest.approx(wanted, abs=1.5)
    page.locator("#sigma-range").fill("900")
    expect(page.locator("#sigma-auto")).to_be_enabled()
    page.locator("#sigma-auto").click()
    expect(page.locator("#sigma-range")).to_have_value(str(round(1000 * place(sigma, sigma["auto"]))))
    expect(page.locator("#sigma-auto")).to_be_disabled()


def test_late_answers_are_dropped(page, served):
    held = hold_first(page)
    page.locator("#sigma-range").fill("50")
    page.wait_for_function("() => document.querySelector('#results').ariaBusy === 'true'")
    while not held:
        page.wait_for_timeout(20)  # timing: between two looks
    page.locator("#sigma-range").fill("950")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    latest = page.locator(".column.dartboard .card-name").all_inner_texts()
    try:
        held[0].continue_()
    except Exception as error:  # noqa: BLE001 - the page has already given the first request up
        assert "closed" in str(error) or "handled" in str(error) or "aborted" in str(error).lower()
    page.wait_for_timeout(400)  # timing: nothing may happen meanwhile
    assert page.locator(".column.dartboard .card-name").all_inner_texts() == latest
    assert page.locator("#sigma-range").input_value() == "950"


def test_many_moves_make_few_requests(page):
    asked = []
    page.on("request", lambda request: asked.append(time.monotonic()) if "explore" in request.url else None)
    page.locator("#sigma-range").focus()
    with page.expect_response("**/explore"):
        page.evaluate(
            """() => {
              const range = document.querySelector("#sigma-range");
              for (let at = 100; at < 140; at++) {
                range.value = String(at);
                range.dispatchEvent(new Event("input", { bubbles: true }));
              }
            }"""
        )
    page.wait_for_timeout(300)  # timing: nothing may happen meanwhile
    assert 1 <= len(asked) <= 2


def test_the_strip_shows_who_survives(page, answer):
    sweep = answer["sweep"]
    times = {}
    for picks in sweep["picks"]:
        for index in picks:
            times[index] = times.get(index, 0) + 1
    picks = answer["methods"]["dartboard"]["picks"]
    rows = page.locator(".strip-cells")
    assert rows.count() == min(16, len(set(times) | set(picks)))
    for order, index in enumerate(picks):
        filled = rows.nth(order).locator("rect:not(.strip-bed)")
        assert filled.count() == times.get(index, 0)
    line = float(page.locator(".line-auto").get_attribute("x1").rstrip("%"))
    assert line == pytest.approx(100 * place(answer["sigma"], answer["sigma"]["auto"]), abs=0.1)


def test_a_click_on_the_strip_sets_sigma(page):
    box = page.locator(".strip-cells").first.bounding_box()
    page.locator(".strip-cells").first.click(position={"x": box["width"] * 0.25, "y": 5})
    expect(page.locator(".sigma-source")).to_have_text(
        re.compile(r"^set by hand, \d+ near-duplicates removed$")
    )
    assert abs(int(page.locator("#sigma-range").input_value()) - 250) <= 5


def test_a_new_question_is_not_lost_to_a_new_sigma(page, served):
    held = hold_first(page)
    page.locator("#questions button").nth(2).click()
    page.locator("#sigma-range").fill("400")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    body = json.loads(held[0].request.post_data)
    wanted = served.explore(demo.questions()[2].text, sigma=body["sigma"])
    expect(page.locator("#query")).to_have_value(demo.questions()[2].text)
    assert page.locator(".spot").count() == len(wanted["candidates"])
    expect(page.locator(".column.top_k .card-name")).to_have_text(pick_names(wanted, "top_k"))
    assert page.locator(".strip-cells").count() > 5


def test_the_strip_is_drawn_again_only_where_it_changes(page):
    page.evaluate("document.querySelector('.strip-cells').dataset.old = 'yes'")
    now = int(page.locator("#sigma-range").input_value())
    with page.expect_response("**/explore"):
        page.locator("#sigma-range").fill(str(now + 1))
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    assert page.locator(".strip-cells[data-old]").count() == 1
    page.locator("#sigma-range").fill("50")
    expect(page.locator(".strip-cells[data-old]")).to_have_count(0)
