"""Passages of one document are told apart wherever they are named."""

import subprocess
import sys

import httpx
import pytest
from playwright.sync_api import expect

from tests.web.serving import serving

LONG = " ".join(f"Step {n}: unpack archive {n}, check its sum and move it to rack {n}." for n in range(60))
GUIDE = f"""# Guide

The guide says how the probe is set up, who looks after it and what to do when it stops measuring the tide.

## Install

### Linux

The probe installs on Linux from the package archive; reload the rules of the device manager afterwards.

### macOS

The probe installs on macOS from the disk image; allow its driver in the settings and plug it in again.

## Racks

{LONG}
"""
OTHER = "# Guide\n\n## Racks\n\nThe racks of the old station hold the probe too, beside the tide gauge.\n"


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """A service over real files: sections, a section in several parts, one title twice, and one alone."""
    folder = tmp_path_factory.mktemp("named")
    texts = folder / "texts"
    (texts / "old").mkdir(parents=True)
    (texts / "guide.md").write_text(GUIDE, encoding="utf-8")
    (texts / "old" / "guide.md").write_text(OTHER, encoding="utf-8")
    (texts / "tides.md").write_text("# Tides\n\nThe probe measures the tide.\n", encoding="utf-8")
    (texts / "notes.txt").write_text(LONG.replace("rack", "probe rack"), encoding="utf-8")
    store = str(folder / "index.dartboard")
    command = [sys.executable, "-m", "dartboard", "index", str(texts), "--store", store, "--chunk-size", "64"]
    subprocess.run(command, check=True, capture_output=True)
    with serving(folder) as service:
        yield service


@pytest.fixture
def named(open_page, indexed):
    page = open_page()
    page.goto(f"{indexed.url}/#q=How+is+the+probe+installed%3F&k=6")
    page.wait_for_selector(".card")
    return page


def texts_of(found):
    return [" ".join(text.split()) for text in found.all_text_contents()]


def test_no_two_candidates_have_the_same_name(named):
    named.get_by_role("button", name="Map as table").click()
    names = texts_of(named.locator("#map tbody th button"))
    assert len(names) > 12
    assert len(set(names)) == len(names)
    assert "Tides" in names  # alone with its title: nothing is added
    assert {"Guide Install", "Guide Racks old/guide.md"} <= set(names)
    assert len([name for name in names if name.startswith("Guide Racks texts/guide.md #")]) > 2
    assert {"notes.txt #1", "notes.txt #2"} <= set(names)  # a title made of the file's name is its name


def test_the_name_is_the_same_everywhere(named):
    names = texts_of(named.locator(".column.dartboard .card-name"))
    assert len(set(names)) == 6
    assert [name for name in names if name.startswith("Guide ")]
    expect(named.locator(".gain-name")).to_have_text(names)
    strip = texts_of(named.locator(".strip-name"))
    assert strip[:6] == [f"{order}{name}" for order, name in enumerate(names, start=1)]
    for order, name in enumerate(names):
        card = named.locator(".column.dartboard .card").nth(order)
        named.locator(f".spot[data-index='{card.get_attribute('data-index')}']").focus()
        expect(named.locator("#map-tooltip strong")).to_have_text(name)
    card.locator(".card-name").click()
    expect(named.locator("#why .why-name strong")).to_have_text(names[-1])
    named.locator("#why button[aria-label=Close]").click()
    for chart in ("Pick by pick", "Survival across sigma"):
        named.get_by_role("button", name=f"{chart} as table").click()
    expect(named.locator("#steps tbody th")).to_have_text([f"{n}. {name}" for n, name in enumerate(names, 1)])
    assert texts_of(named.locator("#strip tbody th"))[:6] == names


def test_uploaded_files_show_their_names(open_page, indexed):
    base = f"{indexed.url}/api/dartboard/collections/uploaded"
    httpx.put(base, json={}, timeout=60).raise_for_status()
    files = {
        "guide/install.md": "# Setting it up\n\nInstall the probe on Linux from the archive.",
        "notes.txt": "Restart the probe after you install it.",
        "rows.csv": "id,text\n7,install the probe in the harbour\n8,install the gauge at the pier",
    }
    parts = [("files", (name, text.encode())) for name, text in files.items()]
    accepted = httpx.post(f"{base}/files", files=parts, timeout=60).raise_for_status().json()
    assert indexed.app.state.service.jobs.get(accepted["job_id"]).ended.wait(60)
    page = open_page()
    page.goto(f"{indexed.url}/#c=uploaded&q=How+is+the+probe+installed%3F&k=4")
    page.wait_for_selector(".card")
    wanted = {"Setting it up guide/install.md", "notes.txt", "rows.csv 7", "rows.csv 8"}
    for place in (".column.dartboard .card-name", ".gain-name"):
        assert set(texts_of(page.locator(place))) == wanted
    assert {name.lstrip("1234") for name in texts_of(page.locator(".strip-name"))} == wanted


@pytest.mark.parametrize("width", [1440, 380])
def test_what_sets_a_passage_apart_is_in_sight(named, width):
    named.set_viewport_size({"width": width, "height": 900})
    for place in (".card-name", ".gain-name", ".strip-name"):
        boxes = named.locator(f"{place}:visible .name-more").evaluate_all(
            """all => all.map((one) => {
              const [own, outer] = [one, one.closest("button")].map((each) => each.getBoundingClientRect());
              return [own.width, own.right - outer.right, own.bottom - outer.bottom];
            })"""
        )
        assert boxes
        assert all(wide > 15 and right < 1 and below < 1 for wide, right, below in boxes), place
