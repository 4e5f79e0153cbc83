"""Takes the README's picture of the playground: ``python -m tests.web.picture``."""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.web.conftest import ARGUMENTS, CHROMIUM
from tests.web.serving import serving

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "playground.png"
LARGEST = 400_000


def main() -> None:
    """Show the first question in a real Chromium and keep what it looks like."""
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as service, sync_playwright() as api:
        browser = api.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1500, "height": 1130}, color_scheme="light")
        page.goto(service.url)
        page.wait_for_selector(".card")
        page.wait_for_timeout(500)  # timing: for the eye, no test runs it
        page.screenshot(path=PICTURE)
        browser.close()
    size = PICTURE.stat().st_size
    if size > LARGEST:
        raise SystemExit(f"{PICTURE.name} has {size} bytes, more than {LARGEST}: take a smaller window")


if __name__ == "__main__":
    main()
