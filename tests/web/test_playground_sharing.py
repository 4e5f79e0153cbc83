"""Links that restore a view; commands and programs that really run; evaluation cases."""

import csv
import json
import shutil
import subprocess
import sys
import zipfile

import pytest
from playwright.sync_api import expect

from dartboard.datasets import demo

FIRST = demo.questions()[0].text


def clipboard(page):
    return page.evaluate("navigator.clipboard.readText()")


def test_a_link_restores_the_view(page, open_page, served):
    page.locator("#query").fill("Which settings matter? 100 % & more <b>")
    page.locator("#go").click()
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    page.locator("#k").fill("4")
    page.locator("#k").press("Enter")
    expect(page.locator(".column.dartboard .card")).to_have_count(4)
    page.locator("#sigma-range").fill("620")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    page.locator("#step").fill("2")
    page.locator(".column.top_k .marker").nth(1).click()
    page.locator(".column.top_k .card-name").nth(3).click()
    name = page.locator("#why .why-name strong").inner_text()
    sigma = page.locator(".sigma-value").inner_text()
    picks = page.locator(".column.dartboard .card-name").all_inner_texts()
    page.locator("#copy-link").evaluate("one => one.click()")
    expect(page.locator("#copy-link")).to_have_text("Copied")

    other = open_page()
    other.goto(clipboard(page))
    other.wait_for_selector(".card")
    expect(other.locator("#query")).to_have_value("Which settings matter? 100 % & more <b>")
    expect(other.locator("#k")).to_have_value("4")
    expect(other.locator(".sigma-value")).to_have_text(sigma)
    expect(other.locator(".step-where")).to_have_text("2 of 4")
    expect(other.locator("#why .why-name strong")).to_have_text(name)
    expect(other.locator(".column.top_k .marker").nth(1)).to_have_attribute("aria-pressed", "true")
    assert other.locator(".column.dartboard .card-name").all_inner_texts() == picks


def test_the_context_of_the_view_is_copied(page, served):
    page.locator("#k").fill("3")
    page.locator("#k").press("Enter")
    expect(page.locator(".column.dartboard .card")).to_have_count(3)
    expected = served.post("context", json={"query": FIRST, "top_k": 3, "triage_k": 100})
    page.locator("#copy-context").click()
    expect(page.locator("#copy-context")).to_have_text(f"Copied {expected['tokens']} tokens")
    assert clipboard(page) == expected["text"] and expected["text"].startswith("[1] ")
    expect(page.locator("#copy-context")).to_have_text("Copy context")


def test_a_context_that_does_not_fit_is_not_copied(open_page, served):
    page = open_page(expect_errors=True)
    page.goto(f"{served.url}/#q=garbage+collection&tokens=3")
    expect(page.locator("#verdict")).to_contain_text("No passage fits")
    page.locator("#copy-context").click()
    expect(page.locator("#copy-context")).to_have_text("Nothing copied")
    expect(page.locator("#problem")).to_contain_text("3 is too small")


def test_a_changed_address_changes_the_view(page):
    page.evaluate("location.hash = 'q=garbage+collection&k=2'")
    expect(page.locator(".column.dartboard .card")).to_have_count(2)
    expect(page.locator("#query")).to_have_value("garbage collection")


def test_back_returns_to_the_question_before(page):
    before = page.locator(".column.dartboard .card-name").all_inner_texts()
    page.locator("#questions button").nth(1).click()
    expect(page.locator("#query")).to_have_value(demo.questions()[1].text)
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    page.go_back()
    expect(page.locator("#query")).to_have_value(FIRST)
    expect(page.locator(".column.dartboard .card-name")).to_have_text(before)


def test_the_box_follows_back_and_forward_while_it_has_the_focus(page):
    before = page.locator(".column.dartboard .card-name").all_inner_texts()
    page.locator("#query").fill("Does garbage collection pause consumers?")
    page.locator("#query").press("Enter")
    expect(page.locator(".column.dartboard .card-name")).not_to_have_text(before)
    expect(page.locator("#query")).to_be_focused()
    page.go_back()
    expect(page.locator("#query")).to_have_value(FIRST)
    expect(page.locator(".column.dartboard .card-name")).to_have_text(before)
    page.go_forward()
    expect(page.locator("#query")).to_have_value("Does garbage collection pause consumers?")


def test_back_returns_to_what_belonged_to_the_question(page):
    page.locator(".column.top_k .marker").nth(1).click()
    page.locator("#query").fill("Does garbage collection pause consumers?")
    page.locator("#more summary").click()
    page.locator("#filter").fill('theme = "partition skew"')
    page.locator("#filter").press("Enter")
    expect(page.locator("#foot")).not_to_contain_text("100 candidates")
    expect(page.locator("#case")).to_be_hidden()
    page.go_back()
    expect(page.locator("#query")).to_have_value(FIRST)
    expect(page.locator("#filter")).to_have_value("")
    expect(page.locator("#foot")).to_contain_text("100 candidates")
    expect(page.locator(".column.top_k .marker").nth(1)).to_have_attribute("aria-pressed", "true")


def test_a_nonsense_address_is_no_harm(open_page, served):
    page = open_page()
    page.goto(f"{served.url}/#k=banana&sigma=-3&step=99&why=nobody&pool=1e999&mmr=x")
    page.wait_for_selector(".card")
    expect(page.locator("#k")).to_have_value("5")
    expect(page.locator(".step-where")).to_have_text("5 of 5")
    expect(page.locator("#why")).to_be_hidden()


def test_a_number_beyond_the_limits_becomes_the_nearest(open_page, served):
    page = open_page()
    page.goto(f"{served.url}/#k=999999&pool=5000&mmr=7")
    page.wait_for_selector(".card")
    expect(page.locator("#k")).to_have_value("50")
    expect(page.locator("#pool")).to_have_value("300")
    expect(page.locator("#mmr")).to_have_value("1")
    expect(page.locator("#problem")).to_be_hidden()


def ask_awkwardly(page):
    page.locator("#query").fill('What\'s "lag"? $HOME `id` \\ ü 🎯')
    page.locator("#go").click()
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")
    return page.locator(".column.dartboard .card").evaluate_all("all => all.map((one) => one.dataset.index)")


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl to run the copied command")
def test_the_copied_command_runs(page, served):
    indices = ask_awkwardly(page)
    page.locator("#copy-curl").click()
    expect(page.locator("#copy-curl")).to_have_text("Copied")
    command = clipboard(page).replace("curl ", "curl -sS ", 1)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["query"] == page.locator("#query").input_value()
    explored = served.explore(answer["query"])
    ids = [explored["candidates"][int(index)]["id"] for index in indices]
    assert [hit["chunk_id"] for hit in answer["results"]] == ids


def test_the_copied_program_runs(page, served):
    indices = ask_awkwardly(page)
    page.locator("#copy-python").click()
    expect(page.locator("#copy-python")).to_have_text("Copied")
    done = subprocess.run([sys.executable, "-c", clipboard(page)], capture_output=True, text=True, check=True)
    explored = served.explore(page.locator("#query").input_value())
    ids = [explored["candidates"][int(index)]["id"] for index in indices]
    assert [line.split("  ")[1] for line in done.stdout.splitlines()] == ids


def test_marked_passages_become_a_case(page, served, tmp_path):
    assert page.locator("#case").is_hidden()
    page.locator(".column.dartboard .marker").nth(0).click()
    page.locator(".column.dartboard .marker").nth(2).click()
    expect(page.locator("#case-count")).to_have_text("2 passages")
    page.locator("#case-name").fill("support")
    page.locator("#case-form").get_by_role("button", name="Save as evaluation case").click()
    expect(page.locator(".case-said")).to_contain_text("Saved")
    with page.expect_download() as waiting:
        page.locator("#case-zip").click()
    waiting.value.save_as(tmp_path / "support.zip")
    with zipfile.ZipFile(tmp_path / "support.zip") as archive:
        archive.extractall(tmp_path)
    qrels = next(tmp_path.rglob("qrels/*.tsv"))
    answer = served.explore(FIRST)
    picks = answer["methods"]["dartboard"]["picks"]
    wanted = {answer["candidates"][picks[order]]["id"] for order in (0, 2)}
    with qrels.open(encoding="utf-8") as rows:
        marked = {row["corpus-id"] for row in csv.DictReader(rows, delimiter="\t") if int(row["score"]) > 0}
    assert marked == wanted


def test_marks_download_without_the_service(page, tmp_path):
    page.locator(".column.mmr .marker").first.click()
    with page.expect_download() as waiting:
        page.locator("#case-download").click()
    waiting.value.save_as(tmp_path / "case.json")
    case = json.loads((tmp_path / "case.json").read_text(encoding="utf-8"))
    assert case["query"] == FIRST
    assert len(case["relevant"]) == 1
    assert len(case["candidates"]) == 100
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#case")).to_be_hidden()
