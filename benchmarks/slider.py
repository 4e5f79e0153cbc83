"""How long the playground's σ slider takes from a move to the new picture, in a real Chromium; write JSON.

    python benchmarks/slider.py [--moves N] [--out FILE]

A ``dartboard serve`` on the demo corpus, a headless browser without a graphics processor, both on this
machine. Each move sets the slider elsewhere; *answered* is when the page has its answer and has drawn it
(results no longer busy), *painted* is the second frame after that. The slider's own number moves at once.
"""

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its parts

from load_parts.servers import playground  # noqa: E402

_MOVE = """
(place) => new Promise((done) => {
  const range = document.querySelector("#sigma-range");
  const results = document.querySelector("#results");
  const began = performance.now();
  const frame = () => new Promise(requestAnimationFrame);
  const watch = new MutationObserver(async () => {
    if (results.getAttribute("aria-busy") !== "false") return;
    watch.disconnect();
    const answered = performance.now() - began;
    await frame();
    await frame();
    const trips = performance.getEntriesByType("resource").filter((entry) => entry.name.endsWith("/explore"));
    done({ answered, painted: performance.now() - began, round_trip: trips.at(-1).duration });
  });
  watch.observe(results, { attributes: true, attributeFilter: ["aria-busy"] });
  range.value = place;
  range.dispatchEvent(new Event("input", { bubbles: true }));
})
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--moves", type=int, default=60)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "slider.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, playground(Path(home)) as server:
        found = _measured(f"http://127.0.0.1:{server.port}/", options.moves)
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


def _measured(url: str, moves: int) -> dict[str, object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(url)
        page.wait_for_selector(".card")
        page.wait_for_timeout(1000)
        taken = []
        for move in range(moves + 5):
            taken.append(page.evaluate(_MOVE, str(40 + (move * 377) % 920)))
            page.wait_for_timeout(150)
        version = browser.version
        browser.close()
    rows = {name: np.array([move[name] for move in taken[5:]]) for name in taken[0]}
    return {"chromium": version, "moves": moves} | {
        name: {at: round(float(np.percentile(row, q)), 1) for at, q in (("p50", 50), ("p95", 95))}
        for name, row in rows.items()
    }


if __name__ == "__main__":
    main()
