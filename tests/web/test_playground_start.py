"""A first visit, questions, collections, how much to select."""

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo
from tests.web.serving import add_documents, pick_names

FIRST = demo.questions()[0].text


def test_the_first_visit_asks_the_first_question(page, served):
    assert page.locator("#query").input_value() == FIRST
    answer = served.explore(FIRST)
    for method in ("top_k", "mmr", "dartboard"):
        expect(page.locator(f".column.{method} .card-name")).to_have_text(pick_names(answer, method))
    expect(page.locator("#verdict")).to_contain_text("Dartboard: 5 passages, 5 different")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#foot")).to_contain_text("all-MiniLM-L6-v2")


def test_a_ready_question(page, served):
    second = demo.questions()[1].text
    assert page.locator("#questions button").count() == len(demo.questions())
    page.get_by_role("button", name=second).click()
    answer = served.explore(second)
    expect(page.locator(".column.dartboard .card-name")).to_have_text(pick_names(answer, "dartboard"))
    assert page.locator("#query").input_value() == second


def test_an_own_question_by_enter(page, served):
    page.locator("#query").fill("Does garbage collection pause consumers?")
    page.locator("#query").press("Enter")
    answer = served.explore("Does garbage collection pause consumers?")
    expect(page.locator(".column.top_k .card-name")).to_have_text(pick_names(answer, "top_k"))
    expect(page.locator("#live")).to_contain_text("Dartboard")


def test_number_of_passages(page):
    page.locator("#k").fill("3")
    page.locator("#k").press("Tab")
    expect(page.locator(".column.dartboard .card")).to_have_count(3)
    expect(page.locator(".column.top_k .card")).to_have_count(3)
    expect(page.locator("#step")).to_have_attribute("max", "3")


def test_a_token_budget_instead(page, served):
    page.locator("#by-tokens").check()
    page.locator("#tokens").fill("200")
    page.locator("#tokens").press("Enter")
    answer = served.explore(FIRST, token_budget=200)
    expect(page.locator(".column.dartboard .card-name")).to_have_text(pick_names(answer, "dartboard"))
    spent = answer["methods"]["dartboard"]["tokens"]
    assert spent <= 200
    expect(page.locator(".column.dartboard .column-head")).to_contain_text(f"{spent} tokens")
    assert page.locator("#k").is_disabled()


def test_a_budget_that_nothing_fits_into(page):
    page.locator("#by-tokens").check()
    page.locator("#tokens").fill("1")
    page.locator("#tokens").press("Enter")
    expect(page.locator("#steps")).to_contain_text("No passage fits into this budget")
    expect(page.locator(".card")).to_have_count(0)
    expect(page.locator("#verdict")).to_have_text("No passage fits into this token budget.")
    expect(page.locator(".connectors path")).to_have_count(0)
    expect(page.locator("#play")).to_be_disabled()
    page.locator("#tokens").fill("300")
    page.locator("#tokens").press("Enter")
    expect(page.locator(".connectors path").first).to_be_attached()
    expect(page.locator("#play")).to_be_enabled()


def test_a_filter_and_nothing_found(page, served):
    page.locator("#more summary").click()
    page.locator("#filter").fill('theme = "partition skew"')
    page.locator("#filter").press("Enter")
    answer = served.explore(FIRST, filter='theme = "partition skew"')
    expect(page.locator(".column.top_k .card-name")).to_have_text(pick_names(answer, "top_k"))
    page.locator("#filter").fill('theme = "no such theme"')
    page.locator("#filter").press("Enter")
    expect(page.locator("#empty")).to_contain_text("Nothing found")
    expect(page.locator("#shown")).to_be_hidden()


def test_the_filter_in_the_placeholder_finds_something(page):
    page.locator("#more summary").click()
    page.locator("#filter").fill(page.locator("#filter").get_attribute("placeholder"))
    page.locator("#filter").press("Enter")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#foot")).not_to_contain_text("100 candidates")
    expect(page.locator(".column.dartboard .card").first).to_be_visible()


OWN = "Does garbage collection pause consumers?"


def tick_the_budget(page):
    page.locator("#by-tokens").check()


def change_the_number(page):
    page.locator("#k").fill("3")
    page.locator("#k").press("Tab")


def fill_the_filter(page):
    page.locator("#more summary").click()
    page.locator("#filter").fill("theme = 'partition skew'")
    page.locator("#filter").press("Tab")


@pytest.mark.parametrize(
    ("change", "options"),
    [
        (tick_the_budget, {"token_budget": 500}),
        (change_the_number, {"k": 3}),
        (fill_the_filter, {"filter": "theme = 'partition skew'"}),
    ],
)
def test_a_typed_question_is_asked_with_another_control(page, served, change, options):
    page.locator("#query").fill(OWN)
    change(page)
    expect(page.locator(".column.dartboard .card-name")).to_have_text(
        pick_names(served.explore(OWN, **options), "dartboard")
    )
    expect(page.locator("#query")).to_have_value(OWN)


def test_an_emptied_box_is_left_alone(page, served):
    page.locator("#query").fill("")
    change_the_number(page)
    expect(page.locator(".column.top_k .card-name")).to_have_text(
        pick_names(served.explore(FIRST, k=3), "top_k")
    )
    expect(page.locator("#query")).to_have_value("")
    page.locator("#questions button").first.click()
    expect(page.locator("#query")).to_have_value(FIRST)


def test_the_slider_leaves_a_typed_question_alone(page):
    verdict = page.locator("#verdict").inner_text()
    page.locator("#query").fill(OWN)
    page.locator("#sigma-range").fill("150")
    expect(page.locator("#verdict")).not_to_have_text(verdict)
    expect(page.locator("#query")).to_have_value(OWN)


def test_what_is_typed_while_the_page_starts_stays(open_page, served):
    page = open_page()
    held = []
    page.route("**/api/dartboard/questions", lambda route: held.append(route))
    page.goto(served.url)
    page.locator("#query").fill(OWN)
    while not held:
        page.wait_for_timeout(20)  # timing: between two looks
    held[0].continue_()
    expect(page.locator("#empty")).to_contain_text("Ask the collection something")
    expect(page.locator("#query")).to_have_value(OWN)
    page.locator("#query").press("Enter")
    expect(page.locator(".column.top_k .card-name")).to_have_text(pick_names(served.explore(OWN), "top_k"))


def test_a_number_beyond_the_limits_is_put_right_each_time(page):
    for _ in range(2):
        page.locator("#k").fill("999")
        page.locator("#k").press("Tab")
        expect(page.locator("#k")).to_have_value("50")


def test_another_collection(page, served):
    add_documents(served, "birds", [(f"bird-{n}", f"Bird number {n} sings at dawn.") for n in range(6)])
    page.reload()
    page.wait_for_selector(".card")
    page.locator("#collection").select_option("birds")
    expect(page.locator(".column.dartboard .card-text").first).to_contain_text("sings at dawn")
    expect(page.locator("#questions")).to_be_hidden()  # they are about the demo
    page.locator("#collection").select_option("demo")
    expect(page.locator("#questions button").first).to_be_visible()


def test_an_own_collection_is_not_asked_about_the_demo(open_page, tmp_path):
    from tests.web.serving import serving

    with serving(tmp_path, collection="birds") as own:
        add_documents(own, "birds", [("b", "A wren sings at dawn."), ("c", "A robin sings at dusk.")])
        page = open_page()
        page.goto(own.url)
        expect(page.locator("#empty")).to_contain_text("Ask the collection something")
        expect(page.locator("#query")).to_be_focused()
        expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
        expect(page.locator("#empty")).not_to_contain_text("demo")
        expect(page.locator("#parts")).to_be_hidden()
        page.get_by_role("button", name="c", exact=True).click()  # has no title
        expect(page.locator("#query")).to_have_value("c")
        expect(page.locator("#parts")).to_be_visible()
        page.locator("#query").fill("Who sings?")
        page.locator("#go").click()
        expect(page.locator(".column.dartboard .card")).to_have_count(2)
        page.evaluate("1")


def test_a_question_about_something_else(page):
    expect(page.locator("#irrelevant")).to_be_hidden()
    page.locator("#query").fill("How do I bake sourdough bread?")
    page.locator("#query").press("Enter")
    expect(page.locator("#irrelevant")).to_contain_text("Nothing relevant found")
    expect(page.locator(".column.dartboard .card")).to_have_count(5)
    expect(page.locator("#live")).to_contain_text("Nothing relevant found")
    page.locator("#query").fill(FIRST)
    page.locator("#query").press("Enter")
    expect(page.locator("#irrelevant")).to_be_hidden()
