"""The dartboard: true distances, areas, numbers, ties; hover and keyboard."""

import math
import re

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo
from tests.web.serving import add_documents

FIRST = demo.questions()[0].text
DRAWN = """() => [...document.querySelectorAll(".spot")].map((spot) => ({
  index: Number(spot.dataset.index),
  at: spot.getAttribute("transform").match(/-?[\\d.]+/g).map(Number),
  radius: Number(spot.querySelector(".dot").getAttribute("r")),
  label: spot.querySelector(".dot-label").textContent,
  kind: spot.getAttribute("class"),
}))"""


@pytest.fixture
def answer(served):
    return served.explore(FIRST)


@pytest.fixture
def drawn(page):
    return {one["index"]: one for one in page.evaluate(DRAWN)}


def middle(page):
    return float(page.locator("svg.map").get_attribute("viewBox").split()[2]) / 2


def test_the_radius_is_the_distance_to_the_query(page, drawn, answer):
    centre = middle(page)
    scale = None
    for index, candidate in enumerate(answer["candidates"]):
        radius = math.dist(drawn[index]["at"], (centre, centre))
        scale = scale or radius / candidate["distance"]
        assert radius == pytest.approx(scale * candidate["distance"], abs=0.2)
    labels = page.locator(".ring-label").all_text_contents()
    rings = sorted(float(one.get_attribute("r")) for one in page.locator(".ring").all())
    assert len(labels) >= 3
    assert [float(label) * scale for label in sorted(labels, key=float)] == pytest.approx(rings, abs=0.5)


def test_the_area_is_the_probability(drawn, answer):
    top = max(answer["candidates"], key=lambda one: one["probability"])["probability"]
    largest = max(one["radius"] for one in drawn.values())
    for index, candidate in enumerate(answer["candidates"]):
        area = (drawn[index]["radius"] / largest) ** 2
        assert area == pytest.approx(candidate["probability"] / top, abs=2e-3)


def test_picks_are_numbered_and_ties_lead_to_them(page, drawn, answer):
    picks = answer["methods"]["dartboard"]["picks"]
    assert {index: one["label"] for index, one in drawn.items() if one["label"]} == {
        index: str(order) for order, index in enumerate(picks, start=1)
    }
    tied = sum(
        cover >= 0.5 and index not in picks and owner in picks
        for index, (cover, owner) in enumerate(zip(answer["cover"], answer["covered_by"], strict=True))
    )
    assert tied > 0
    assert page.locator(".tie:not(.alone)").count() == tied
    expect(page.locator(".map-note")).to_contain_text(f"Stress {answer['layout']['stress']:.3f}")


def test_hover_shows_the_text(page, answer):
    index = answer["methods"]["dartboard"]["picks"][1]
    page.locator(f".spot[data-index='{index}'] .dot").hover(force=True)
    tooltip = page.locator("#map-tooltip")
    expect(tooltip).to_contain_text(answer["candidates"][index]["text"][:100])
    expect(tooltip).to_contain_text("Pick 2")
    page.mouse.move(2, 2)
    expect(tooltip).to_be_hidden()


def test_the_keyboard_moves_between_candidates(page, answer):
    page.locator(".spot[data-index='0']").focus()
    tooltip = page.locator("#map-tooltip")
    expect(tooltip).to_contain_text(answer["candidates"][0]["text"][:80])
    page.keyboard.press("ArrowRight")
    expect(page.locator(".spot[data-index='1']")).to_be_focused()
    expect(tooltip).to_contain_text(answer["candidates"][1]["text"][:80])
    page.keyboard.press("End")
    last = len(answer["candidates"]) - 1
    expect(page.locator(f".spot[data-index='{last}']")).to_be_focused()
    page.keyboard.press("Escape")
    expect(tooltip).to_be_hidden()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".spot[data-index='0']")).to_be_focused()
    assert page.locator(".spot[tabindex='0']").count() == 1
    label = page.locator(".spot[data-index='0']").get_attribute("aria-label")
    assert re.search(r"Retriever rank 1, cosine 0\.\d\d", label)
    page.keyboard.press("Enter")
    expect(page.locator("#why")).to_be_visible()


def test_the_map_keeps_its_places_when_sigma_changes(page):
    before = {one["index"]: one["at"] for one in page.evaluate(DRAWN)}
    verdict = page.locator("#verdict").inner_text()
    page.locator("#sigma-range").fill("150")
    expect(page.locator("#verdict")).not_to_have_text(verdict)
    assert {one["index"]: one["at"] for one in page.evaluate(DRAWN)} == before


def test_a_passage_that_is_the_question_lies_in_the_middle(open_page, served):
    add_documents(served, "echo", [("only", "Where do consumers lag?")])
    page = open_page()
    page.goto(f"{served.url}/#q=Where+do+consumers+lag%3F&c=echo&k=1")
    page.wait_for_selector(".card")
    (spot,) = page.evaluate(DRAWN)
    assert math.dist(spot["at"], (middle(page), middle(page))) < 1
    assert page.locator(".ring").count() < 10
