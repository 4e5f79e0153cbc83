"""The scrubber: one pick after another, the uncovered probability shrinking."""

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo

FIRST = demo.questions()[0].text


@pytest.fixture
def steps(served):
    return served.explore(FIRST)["steps"]


def percent(share):
    value = 100 * share
    return f"{value:.{0 if value >= 9.95 else 1 if value >= 0.995 else 2}f}\u00a0%"


def test_each_step_shows_its_state(page, steps):
    scrubber = page.locator("#step")
    assert scrubber.input_value() == str(len(steps))
    for at, step in enumerate(steps, start=1):
        scrubber.fill(str(at))
        expect(page.locator("#uncovered")).to_contain_text(percent(step["uncovered"]))
        expect(page.locator(".spot.pick")).to_have_count(at)
        expect(page.locator(".column.dartboard .card.later")).to_have_count(len(steps) - at)
        expect(page.locator(".mass-part:not(.ghost)").first).to_be_visible()
        assert page.locator(".mass-bar .mass-part.ghost").count() == len(steps) - at
        rival = step["runner_up"]["index"]
        expect(page.locator(".spot.rival")).to_have_attribute("data-index", str(rival))
    assert steps[0]["uncovered"] > steps[-1]["uncovered"]


def test_bars_are_as_long_as_the_gains(page, steps):
    widths = page.locator(".mass-bar .mass-part").evaluate_all(
        "all => all.map((one) => parseFloat(one.getAttribute('width')))"
    )
    assert widths == pytest.approx([100 * step["gain"] for step in steps])
    expect(page.locator(".gain-value")).to_have_text([percent(step["gain"]) for step in steps])


def test_the_runner_up_and_by_how_much_it_lost(page, steps):
    page.locator("#step").fill("2")
    note = page.locator(".rival-note")
    expect(note).to_contain_text("Runner-up")
    expect(note).to_contain_text(f"lost by {percent(steps[1]['runner_up']['behind'])}")


def test_the_keyboard_scrubs(page):
    page.locator("#step").focus()
    page.keyboard.press("Home")
    expect(page.locator(".step-where")).to_have_text("1 of 5")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".step-where")).to_have_text("2 of 5")
    expect(page.locator("#live")).to_contain_text("Step 2")


def test_play_runs_to_the_end_and_can_pause(page):
    page.clock.install()
    page.locator("#play").click()
    expect(page.locator(".step-where")).to_have_text("1 of 5")
    page.clock.run_for(1200)
    expect(page.locator(".step-where")).to_have_text("2 of 5")
    page.locator("#play").click()
    page.clock.run_for(5000)
    expect(page.locator(".step-where")).to_have_text("2 of 5")
    page.locator("#play").click()
    page.clock.run_for(9000)
    expect(page.locator(".step-where")).to_have_text("5 of 5")
    expect(page.locator("#play")).to_have_text("▶ Play")


def test_a_row_goes_to_its_step(page):
    page.get_by_role("button", name="Go to step 3").click()
    expect(page.locator(".step-where")).to_have_text("3 of 5")
