"""Every chart has a table twin, with the same numbers."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo

FIRST = demo.questions()[0].text
CHARTS = {
    "Map": "Candidates in the retriever's order",
    "Pick by pick": "Picks of Dartboard in order",
    "Survival across sigma": "Which passages are picked across σ",
}


@pytest.mark.parametrize(("chart", "caption"), CHARTS.items())
def test_a_button_swaps_chart_and_table(page, chart, caption):
    button = page.get_by_role("button", name=f"{chart} as table")
    button.focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("table", name=caption)
    expect(table).to_be_visible()
    assert table.locator("tbody tr").count() > 0
    assert table.locator("thead th[scope=col]").count() > 1
    expect(button).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Enter")
    expect(table).to_be_hidden()


def test_every_chart_is_counted(page):
    page.locator(".card-name").first.click()
    buttons = page.locator("button[aria-label$='as table']")
    labels = buttons.evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert sorted(labels) == sorted([f"{name} as table" for name in CHARTS] + ["Gain at each step as table"])


def test_the_map_as_table(page, served):
    answer = served.explore(FIRST)
    page.get_by_role("button", name="Map as table").click()
    rows = page.locator("#map tbody tr")
    assert rows.count() == len(answer["candidates"])
    third = answer["candidates"][2]
    cells = rows.nth(2).locator("th, td").all_inner_texts()
    assert cells[0].startswith(third["source"])
    assert cells[1:4] == ["3", f"{third['similarity']:.3f}", f"{third['distance']:.3f}"]
    expect(rows.nth(2).locator(".row-text")).to_contain_text(third["text"][:100])
    expect(rows.nth(2).locator(".row-text")).to_have_attribute("title", third["text"])
    rows.nth(2).get_by_role("button").click()
    expect(page.locator("#why")).to_be_visible()


def test_the_map_as_table_is_in_sight(page):
    page.get_by_role("button", name="Map as table").click()
    frame = page.locator("#map .table-scroll")
    assert frame.evaluate("one => one.scrollWidth <= one.clientWidth")
    heights = page.locator("#map tbody tr").evaluate_all("all => all.map((one) => one.offsetHeight)")
    assert max(heights) <= 80
    measure = "all => all.map((one) => [one.clientWidth, getComputedStyle(one).textOverflow])"
    texts = page.locator(".row-text").evaluate_all(measure)
    assert all(wide > 120 and cut == "ellipsis" for wide, cut in texts)


def test_the_states_in_the_table(page, served):
    answer = served.explore(FIRST)
    picks = answer["methods"]["dartboard"]["picks"]
    page.get_by_role("button", name="Map as table").click()
    states = page.locator("#map tbody td:last-child").all_inner_texts()
    for index, state in enumerate(states):
        if index in picks:
            assert state == f"Pick {picks.index(index) + 1}"
        elif answer["cover"][index] >= 0.5:
            pick = picks.index(answer["covered_by"][index]) + 1
            copy = answer["cover"][index] >= 0.9995
            assert state == f"copy of pick {pick}" if copy else state.startswith(f"like pick {pick}, ")
        else:
            assert state == "no pick"
    assert "no pick" in states
    assert any(state.startswith("like") for state in states)
    assert any(state.startswith("copy of") for state in states)


def ranges(sweep, words):
    """Where along σ each passage is picked, as the table writes it; gaps have a comma."""
    found = set()
    for index in {index for picks in sweep["picks"] for index in picks}:
        at = [place for place, picks in enumerate(sweep["picks"]) if index in picks]
        starts = [place for place in at if place - 1 not in at]
        ends = [place for place in at if place + 1 not in at]
        found.add(
            ", ".join(
                words[a] if a == b else f"{words[a]} – {words[b]}" for a, b in zip(starts, ends, strict=True)
            )
        )
    return found


def test_the_strip_as_table_keeps_the_gaps(open_page, served):
    sweeps = {question.text: served.explore(question.text)["sweep"] for question in demo.questions()}
    question, sweep = next(
        (text, sweep)
        for text, sweep in sweeps.items()
        if any("," in text for text in ranges(sweep, [str(sigma) for sigma in sweep["sigmas"]]))
    )
    page = open_page()
    page.goto(f"{served.url}/#{urlencode({'q': question})}")
    page.wait_for_selector(".card")
    write = "async (sigmas) => sigmas.map((await import('/static/numbers.js')).sigmaText)"
    words = page.evaluate(write, sweep["sigmas"])
    page.get_by_role("button", name="Survival across sigma as table").click()
    assert set(page.locator("#strip .ranges").all_inner_texts()) - {""} == ranges(sweep, words)


def test_the_table_follows_the_step(page, served):
    steps = served.explore(FIRST)["steps"]
    page.get_by_role("button", name="Map as table").click()
    page.locator("#step").fill("1")
    expect(page.locator("#map caption")).to_contain_text("after 1 picks")
    expect(page.locator("#map tbody td", has_text="Pick 2")).to_have_count(0)
    page.get_by_role("button", name="Pick by pick as table").click()
    assert page.locator("#steps tbody tr").count() == len(steps)


def test_the_gains_of_one_passage_as_table(page, served):
    steps = served.explore(FIRST)["steps"]
    page.locator(".column.top_k .card-name").nth(1).click()
    page.get_by_role("button", name="Gain at each step as table").click()
    assert page.locator("#why tbody tr").count() == len(steps)
