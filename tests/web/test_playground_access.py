"""Keyboard, names for assistive technology, themes, motion."""

import pytest


def test_everything_has_a_name(page):
    page.locator(".card-name").first.click()
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a, summary, [role=img]")]
          .filter((one) => one.checkVisibility() || one instanceof SVGElement)
          .filter((one) => !(one.ariaLabel || one.textContent.trim() || one.labels?.length || one.title))
          .map((one) => one.outerHTML.slice(0, 120))"""
    )
    assert nameless == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))
    headings = page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => +one.tagName[1])")
    assert headings[0] == 1


ACTIVE = "document.activeElement.id + ' ' + document.activeElement.getAttribute('class')"


def test_tab_reaches_every_control(page):
    page.locator("#query").focus()
    reached = set()
    for _ in range(140):
        page.keyboard.press("Tab")
        reached |= set(page.evaluate(ACTIVE).split())
    wanted = {"go", "collection", "k", "chip", "sigma-range", "spot", "play", "step", "gain-name"}
    assert wanted | {"card-name", "marker", "strip-name", "copy-link", "copy-curl"} <= reached


def test_focus_is_visible(page):
    for selector in ("#go", ".card-name", "#sigma-range", ".chip"):
        page.locator(selector).first.focus()
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Tab")
        style = page.locator(selector).first.evaluate("one => getComputedStyle(one).outlineStyle")
        assert style == "solid", selector
    page.locator(".spot[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    halo = page.locator(".spot:focus .halo")
    assert halo.evaluate("one => getComputedStyle(one).stroke") != "none"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_the_button(open_page, served, scheme):
    page = open_page(color_scheme=scheme)
    page.goto(served.url)
    page.wait_for_selector(".card")
    brightness = (
        "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    )
    before = sum(page.evaluate(brightness))
    assert (before > 380) is (scheme == "light")
    page.locator(".theme").click()
    assert (sum(page.evaluate(brightness)) > 380) is (scheme == "dark")
    page.reload()
    page.wait_for_selector(".card")
    assert (sum(page.evaluate(brightness)) > 380) is (scheme == "dark")


CONTRAST = """() => {
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const bad = new Set();
  for (const one of document.querySelectorAll("main *, header *, aside *")) {
    if (one instanceof SVGElement) continue;
    if (!one.checkVisibility() || one.disabled || one.closest(".later, .loading")) continue;
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
    const [a, b] = [light(parse(getComputedStyle(one).color)), light(ground(one))].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) bad.add(`${one.className || one.tagName} ${contrast.toFixed(2)}`);
  }
  return [...bad];
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(open_page, served, scheme):
    page = open_page(color_scheme=scheme)
    page.goto(f"{served.url}/#q=Why+do+consumers+lag%3F&k=8")
    page.wait_for_selector(".card")
    page.locator(".column.top_k .card-name").nth(1).click()
    page.mouse.move(0, 0)
    assert page.evaluate(CONTRAST) == []


def test_motion_can_be_reduced(open_page, served):
    page = open_page(reduced_motion="no-preference")
    page.goto(served.url)
    page.wait_for_selector(".card")
    durations = "[...document.querySelectorAll('*')].map((one) => getComputedStyle(one).transitionDuration)"
    assert set(page.evaluate(durations)) > {"0s"}
    page.emulate_media(reduced_motion="reduce")
    assert set(page.evaluate(durations)) == {"0s"}


def test_picks_are_told_apart_without_colour(page):
    labels = page.locator(".column.dartboard .badge").all_inner_texts()
    assert labels == ["1", "2", "3", "4", "5"]
    assert page.locator(".column.top_k .badge").first.inner_text() in {"1", "2", "3", "4", "5", "–"}
