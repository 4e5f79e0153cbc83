"""Three columns: what moved, what repeats, what each retriever said."""

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo

FIRST = demo.questions()[0].text


@pytest.fixture
def answer(served):
    return served.explore(FIRST)


def test_lines_join_the_same_passage(page, answer):
    sets = {name: one["picks"] for name, one in answer["methods"].items()}

    def shared(a, b):
        return sorted(set(sets[a]) & set(sets[b]))

    def indices(selector):
        found = page.locator(selector).evaluate_all("all => all.map((one) => one.dataset.index)")
        return sorted(map(int, found))

    wanted = shared("top_k", "mmr") + shared("mmr", "dartboard")
    skipping = sorted(set(shared("top_k", "dartboard")) - set(sets["mmr"]))
    assert indices(".connectors path:not(.skips)") == sorted(wanted)
    assert indices(".connectors path.skips") == skipping
    index = wanted[0]
    ends = page.evaluate(
        """(index) => {
          const path = document.querySelector(`.connectors path:not(.skips)[data-index="${index}"]`);
          const box = path.getBoundingClientRect();
          return [box.left, box.right, ...["top_k", "mmr", "dartboard"].flatMap((method) => {
            const card = document.querySelector(`.card[data-method=${method}][data-index="${index}"]`);
            return card ? [card.getBoundingClientRect().left, card.getBoundingClientRect().right] : [];
          })];
        }""",
        index,
    )
    left, right, *cards = ends
    assert any(abs(left - edge) < 3 for edge in cards)
    assert any(abs(right - edge) < 3 for edge in cards)


def test_each_set_says_how_much_it_repeats_and_covers(page, answer):
    for method, one in answer["methods"].items():
        head = page.locator(f".column.{method} .column-head")
        expect(head.locator(".meter.redundancy strong")).to_have_text(f"{one['redundancy']:.2f}")
        expect(head.locator(".meter.coverage strong")).to_have_text(f"{100 * one['coverage']:.0f}\u00a0%")
    overlap = answer["overlap"]
    expect(page.locator(".column.dartboard .column-head")).to_contain_text(
        f"Shares {overlap['top_k|dartboard']} with KNN, {overlap['mmr|dartboard']} with MMR"
    )


def test_cards_say_where_a_passage_went(page, answer):
    picks = answer["methods"]["dartboard"]["picks"]
    for card, index in zip(
        page.locator(".column.top_k .card").all(), answer["methods"]["top_k"]["picks"], strict=True
    ):
        note = card.locator(".card-note")
        if index in picks:
            expect(note).to_contain_text(f"Dartboard’s pick {picks.index(index) + 1}")
        elif answer["cover"][index] >= 0.5:
            owner = picks.index(answer["covered_by"][index]) + 1
            expect(note).to_contain_text(f"left out: pick {owner} says it")
            expect(card.locator(".badge")).to_have_text(str(owner))
        else:
            expect(note).to_contain_text("left out")
    expect(page.locator(".column.dartboard .card-note", has_text="New").first).to_be_visible()


def test_members_of_the_hybrid(page, answer):
    first = answer["candidates"][answer["methods"]["dartboard"]["picks"][0]]
    members = page.locator(".column.dartboard .card").first.locator(".members li")
    assert answer["retriever"] == "hybrid"
    for name in ("dense", "bm25"):
        said = first["shares"][name]
        expect(members.filter(has_text=name)).to_have_text(f"{name} #{said['rank']} · {said['score']:.2f}")


def test_hovering_a_card_lights_its_dot_and_its_pick(page, answer):
    picks = answer["methods"]["dartboard"]["picks"]
    left_out = next(
        index
        for index in answer["methods"]["top_k"]["picks"]
        if index not in picks and answer["cover"][index] >= 0.5
    )
    page.locator(f".column.top_k .card[data-index='{left_out}']").hover()
    expect(page.locator(f".spot.hover[data-index='{left_out}']")).to_have_count(1)
    owner = answer["covered_by"][left_out]
    expect(page.locator(f".column.dartboard .card.covers[data-index='{owner}']")).to_have_count(1)


def test_a_long_text_opens(page):
    card = page.locator(".card", has=page.locator(".more-text")).first
    before = card.locator(".card-text").bounding_box()["height"]
    card.locator(".more-text").click()
    assert card.locator(".card-text").bounding_box()["height"] > before
    expect(card.locator(".more-text")).to_have_text("less")


@pytest.mark.parametrize("part", [".card-text", ".card-note", ".members"])
def test_the_whole_card_asks_why(page, answer, part):
    card = page.locator(".column.top_k .card").nth(2)
    card.locator(part).click()
    one = answer["candidates"][answer["methods"]["top_k"]["picks"][2]]
    expect(page.locator("#why")).to_contain_text(one["id"])
    page.keyboard.press("Escape")
    expect(page.locator("#why")).to_be_hidden()
    expect(card.locator(".card-name")).to_be_focused()


def test_buttons_of_a_card_and_selecting_its_text_do_not_ask_why(page):
    card = page.locator(".card", has=page.locator(".more-text")).first
    card.locator(".marker").click()
    card.locator(".more-text").click()
    card.locator(".help-mark").click()
    card.locator(".help-text").click()
    page.keyboard.press("Escape")
    text = card.locator(".card-text").bounding_box()
    page.mouse.move(text["x"] + 4, text["y"] + 8)
    page.mouse.down()
    page.mouse.move(text["x"] + 120, text["y"] + 8)
    page.mouse.up()
    assert page.evaluate("getSelection().toString()") != ""
    expect(page.locator("#why")).to_be_hidden()
    expect(page.locator("#case-count")).to_have_text("1 passage")


@pytest.fixture
def phone(open_page, served):
    page = open_page(width=390, height=844)
    page.goto(served.url)
    page.wait_for_selector(".card:visible")
    return page


def test_on_a_phone_each_method_has_a_tab(phone, answer):
    tabs = phone.get_by_role("tab")
    assert [text.split()[0] for text in tabs.all_inner_texts()] == ["KNN", "MMR", "Dartboard"]
    panels = phone.get_by_role("tabpanel")
    expect(panels).to_have_count(1)
    expect(phone.get_by_role("tab", selected=True)).to_contain_text("Dartboard")
    expect(phone.locator(".column.dartboard .card")).to_have_count(len(answer["steps"]))
    phone.locator("#tab-top_k").click()
    expect(phone.locator(".column:visible")).to_have_class("column top_k chosen")
    expect(panels).to_have_id(phone.locator("#tab-top_k").get_attribute("aria-controls"))
    phone.locator(".column.top_k .card-text").nth(1).click()
    expect(phone.locator("#why")).to_be_visible()


def test_tabs_follow_the_keyboard_and_stay_for_the_next_question(phone):
    phone.locator("#tab-dartboard").focus()
    for key, method in [("ArrowLeft", "mmr"), ("Home", "top_k"), ("End", "dartboard"), ("ArrowLeft", "mmr")]:
        phone.keyboard.press(key)
        expect(phone.locator(f"#tab-{method}")).to_be_focused()
        expect(phone.get_by_role("tab", selected=True)).to_have_id(f"tab-{method}")
    phone.keyboard.press("Tab")
    assert phone.evaluate("document.activeElement.closest('.column')?.classList.contains('mmr')")
    phone.locator("#query").fill("Why do messages arrive late?")
    phone.keyboard.press("Enter")
    expect(phone.locator("#results")).to_have_attribute("aria-busy", "false")
    expect(phone.locator(".column:visible")).to_have_class("column mmr chosen")


def test_side_by_side_there_are_no_tabs(page):
    expect(page.locator(".column-tabs")).to_be_hidden()
    expect(page.locator(".column:visible")).to_have_count(3)
    expect(page.locator("[role=tabpanel]")).to_have_count(0)
    page.set_viewport_size({"width": 600, "height": 900})
    expect(page.locator("[role=tabpanel]:visible")).to_have_count(1)


@pytest.mark.parametrize("width", [380, 700, 1024, 1280, 1700])
def test_the_page_never_scrolls_sideways(open_page, served, width):
    page = open_page(width=width)
    page.goto(served.url)
    page.wait_for_selector(".card:visible")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    lines = page.locator(".connectors")
    expect(lines).to_be_visible() if width >= 860 else expect(lines).to_be_hidden()
    expect(page.locator(".column:visible")).to_have_count(3 if width >= 860 else 1)
    expect(page.locator(".column.dartboard .card .rank").first).to_be_visible()


def test_columns_say_what_they_go_by(page, served):
    assert served.explore(FIRST)["retriever"] == "hybrid"
    expect(page.locator("#head-top_k")).to_have_text("Nearest neighbours by hybrid score")
    expect(page.locator("#head-mmr")).to_have_text("MMR relevance 0.7, by hybrid score")
    expect(page.locator("#head-dartboard")).to_have_text("Dartboard")
