"""Documents that attack the page show as text: markup, huge words, both directions, control characters."""

import pytest
from playwright.sync_api import expect

from tests.web.serving import add_documents

RUN = "window.watched.ran += 1"
HOSTILE = {
    "script": f"Consumers fall behind <script>{RUN}; alert(1)</script> because handlers wait.",
    "image": f'Consumers fall behind <img src=x onerror="{RUN}; alert(2)"> when disks are full.',
    "svg": f'Consumers lag </p></article><svg onload="{RUN}"><style>*{{display:none}}</style>',
    "link": 'Consumers lag: <a href="javascript:alert(3)">why</a> javascript:alert(4) data:text/html,<b>',
    "template": "Consumers lag {{constructor.constructor('alert(5)')()}} ${alert(6)} <%= 7 %> by skew.",
    "huge": "Consumers fall behind: " + "A" * 5000,
    "wide": "Consumers fall behind " + "w" * 300 + " " + "https://example.org/" + "x" * 400,
    "rtl": "‫المستهلكون يتأخرون لأن المعالجة بطيئة‬ ‮ consumers fall behind gnidrawkcab",
    "emoji": "Consumers fall behind 🎯👩‍👩‍👧‍👦🏳️‍🌈 " + "👍🏽" * 60,
    "control": "Consumers fall\u0007 behind\u001b[31m red\u0008 \u0085 because\u200b of zero\ufeff widths.",
    "zalgo": "C" + "\u0335\u0321\u034e" * 40 + "onsumers fall behind",
    "entities": "Consumers &lt;fall&gt; behind &amp; &#x3C;script&#x3E;alert(8)&#x3C;/script&#x3E;",
}
NAME = '"><img src=x onerror="window.watched.ran += 1">'


@pytest.fixture(scope="module")
def hostile(served):
    documents = [(f"{name} {NAME}" if name == "script" else name, text) for name, text in HOSTILE.items()]
    add_documents(served, "hostile", documents)
    return served


@pytest.fixture(params=[1440, 380])
def attacked(request, open_page, hostile):
    page = open_page(width=request.param)
    query = "Why do consumers <img src=x onerror=alert(9)> fall behind?"
    page.goto(f"{hostile.url}/")
    page.wait_for_selector(".card:visible")
    if request.param < 860:
        page.locator("#tab-top_k").click()
    page.evaluate(f"location.hash = new URLSearchParams({{q: {query!r}, c: 'hostile', k: 12, pool: 60}})")
    expect(page.locator("#collection")).to_have_value("hostile")
    expect(page.locator(".card")).to_have_count(
        3 * len(HOSTILE)
    )  # the demo's answer, shown before, has fifteen
    return page


def test_nothing_runs_and_nothing_breaks_out(attacked):
    page = attacked
    for button in page.locator("button[aria-label$='as table']").all():
        button.click()
        button.click()
    for name in page.locator(".column.top_k .card-name").all():
        name.evaluate("one => one.click()")
        expect(page.locator("#why .diff-text").first).to_be_visible()
    page.locator("#why button[aria-label=Close]").click()
    page.locator(".spot").first.focus()
    for _ in range(page.locator(".spot").count() - 1):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(200)  # timing: nothing may happen meanwhile
    assert page.evaluate("window.watched") == {"violations": [], "ran": 0}
    foreign = "main :is(img, script, iframe, style, a[href^=javascript]), #why :is(img, script)"
    assert page.locator(foreign).count() == 0
    assert page.locator("[style*='display']").count() == 0


def test_it_shows_as_text(attacked, hostile):
    answer = hostile.explore("Why do consumers fall behind?", collection="hostile", k=12)
    texts = " ".join(one["text"] for one in answer["candidates"])
    assert "<script>" in texts
    shown = " ".join(attacked.locator(".column.top_k .card-text").all_inner_texts())
    for piece in ("<script>window.watched.ran", "<img src=x onerror=", "{{constructor", "&lt;fall&gt;"):
        assert piece in shown


def test_the_layout_holds(attacked):
    page = attacked
    width = page.viewport_size["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    boxes = page.locator(".card").evaluate_all(
        "all => all.map((one) => [one.getBoundingClientRect().right, one.getBoundingClientRect().height])"
    )
    assert all(right <= width + 1 and height < 700 for right, height in boxes)
    page.locator(".column.top_k .card-name").first.evaluate("one => one.click()")
    assert page.locator("#why").evaluate("one => one.scrollWidth <= one.clientWidth + 1")


def test_control_characters_are_visible_and_directions_stay_apart(attacked):
    control = attacked.locator(".column.top_k .card", has_text="zero").locator(".card-text")
    expect(control).to_have_count(1)
    assert not any(ord(sign) < 32 and sign not in "\n\t" for sign in control.inner_text())
    expect(attacked.locator(".card-text bdi[dir=auto]")).to_have_count(attacked.locator(".card-text").count())


def test_the_policy_forbids_inline_code(served, open_page):
    page = open_page()
    answer = page.goto(served.url)
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    page.wait_for_selector(".card")
