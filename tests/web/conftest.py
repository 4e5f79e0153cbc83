"""One service, one browser, and a fresh page a test that must stay free of errors."""

import shutil
from collections.abc import Iterator

import pytest

from tests.web.serving import Served, serving

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""Debian's names; the first one has no windows, and takes two thirds of the time of the others."""
CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
PATIENCE = 300_000
"""Milliseconds, on a machine that has other work."""
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
WATCH = """
window.watched = { violations: [], ran: 0 };
document.addEventListener("securitypolicyviolation", (event) =>
  window.watched.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


@pytest.fixture(scope="package")
def served(tmp_path_factory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(scope="package")
def chromium():
    """A Chromium; without it the tests of this folder are skipped, and counted."""
    api = pytest.importorskip("playwright.sync_api")
    api.expect.set_options(timeout=PATIENCE)
    if CHROMIUM is None:
        pytest.skip("no chromium: the pages are not tested")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium):
    """Makes pages; at the end each must have had no script error, no dialog and no CSP violation.

    They ask for less motion: what moves while a test waits is drawn sixty times a second.
    """
    contexts, errors, pages = [], [], []

    def make(*, expect_errors: bool = False, width: int = 1440, height: int = 900, **options):
        options = {"viewport": {"width": width, "height": height}, "reduced_motion": "reduce", **options}
        context = chromium.new_context(**options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.add_init_script(WATCH)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(f"page error: {error}"))
        page.on("dialog", lambda dialog: (errors.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        if not expect_errors:
            page.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        contexts.append(context)
        pages.append(page)
        return page

    yield make
    for page in pages:
        errors.extend(page.evaluate("window.watched.violations"))
    for context in contexts:
        context.close()
    assert errors == []


@pytest.fixture
def page(open_page, served):
    """The playground after its first question."""
    page = open_page()
    page.goto(served.url)
    page.wait_for_selector(".card")
    return page
