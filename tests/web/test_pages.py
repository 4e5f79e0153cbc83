"""The pages for documents and for evaluation, in a real browser."""

import json
import shutil
import threading
import zipfile
from pathlib import Path

import httpx
import pytest

from dartboard.api.keys import Keys
from dartboard.cli import main
from dartboard.datasets import demo
from tests.api.small_app import until
from tests.web.serving import serving

HOSTILE = "<img src=x onerror=window.watched.ran=1>.txt"
BIDI = "evil\u202etxt.exe.md"
IDS = [row["id"] for row in demo.passages()]

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What the command line writes."""
    out = tmp_path_factory.mktemp("made") / "clustered"
    asked = ["eval", "--dataset", "synthetic_clustered", "--resamples", "200", "--copies", "0"]
    assert main([*asked, "--no-sigma-sweep", "--systems", "cosine,dartboard,random", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def lively(tmp_path_factory, report):
    """A service with a report and a saved case, apart from that of the other tests: pages change it."""
    with serving(tmp_path_factory.mktemp("lively")) as service:
        shutil.copytree(report, service.home / "reports" / "clustered")
        yield service


@pytest.fixture
def documents(open_page, lively):
    page = open_page()
    page.goto(f"{lively.url}/documents")
    page.wait_for_selector("#collections table")
    return page


@pytest.fixture
def evaluation(open_page, lively):
    lively.post("cases", json=case("Why are our consumers falling behind?"))
    page = open_page()
    page.goto(f"{lively.url}/evaluation")
    page.wait_for_selector("#reports table")
    page.wait_for_selector("#cases article")
    page.wait_for_selector("#dataset option", state="attached")
    return page


def case(query, name="support"):
    return {
        "name": name,
        "collection": "demo",
        "query": query,
        "relevant": IDS[:2],
        "candidates": IDS[:6],
    }


def file(name, content):
    return {"name": name, "mimeType": "text/plain", "buffer": content.encode()}


def make(page, name, *files):
    """Send files into a new collection, and wait for what became of them."""
    page.select_option("#collection", label="New collection …")
    page.fill("#new-name", name)
    page.set_input_files("#files", list(files))
    page.click("#send")
    page.wait_for_selector("#outcome table")
    return {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows(page, "#outcome")
    }


def rows(page, place):
    return page.locator(f"{place} tbody tr").all()


def no_sideways_scrolling(page):
    return page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_files_become_a_collection_that_can_be_asked(documents, lively):
    page = documents
    assert page.locator("#send").is_disabled()
    found = make(
        page,
        "tea & <b>biscuits",
        file("tea.md", "# Tea\n\nTea grows on hills."),
        file(HOSTILE, "A hostile name."),
        file(BIDI, "Turned."),
        file("empty.txt", ""),
    )
    assert found["empty.txt"] == ["Left out", "", "is empty"]
    assert found["tea.md"][:2] == ["Indexed", "1"] and found[HOSTILE][0] == "Indexed"
    assert "eviltxt.exe.md" in found  # the mark that turns the direction of writing is gone
    assert "3 files indexed, 1 file left out" in page.inner_text("#outcome")
    assert page.evaluate("window.watched.ran") == 0
    assert page.locator("#outcome img").count() == 0
    listed = {
        row.locator("th").inner_text(): row.locator("td").first.inner_text()
        for row in rows(page, "#collections")
    }
    assert listed["tea & <b>biscuits"] == "3" and listed["demo (default)"] == "150"
    assert page.locator("#live").inner_text() != ""
    page.click("#ask-it")
    page.wait_for_selector("#collection option", state="attached")
    expect(page.locator("#collection")).to_have_value("tea & <b>biscuits")


def test_a_folder_is_sent_with_its_paths_and_without_what_is_hidden(documents, tmp_path):
    page = documents
    folder = tmp_path / "manual"
    (folder / "deep").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core]")
    (folder / "one.md").write_text("# One\n\nFirst words.")
    (folder / "deep" / "two.txt").write_text("Second words.")
    page.select_option("#collection", label="New collection …")
    page.fill("#new-name", "manual")
    page.set_input_files("#folder", str(folder))
    assert "2 files" in page.inner_text("#chosen") and "1 hidden file" in page.inner_text("#chosen")
    page.click("#send")
    page.wait_for_selector("#outcome table")
    names = {row.locator("th").inner_text() for row in rows(page, "#outcome")}
    assert names == {"manual/one.md", "manual/deep/two.txt"}


def test_files_can_be_dropped_and_left_out_again(documents):
    page = documents
    page.evaluate(
        """() => {
          const transfer = new DataTransfer();
          transfer.items.add(new File(["one"], "one.txt"));
          transfer.items.add(new File(["two"], "two.txt"));
          document.getElementById("drop").dispatchEvent(
            new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
        }"""
    )
    page.wait_for_selector("#chosen li")
    assert page.locator("#chosen li").count() == 2
    page.get_by_role("button", name="Leave out one.txt").click()
    assert page.locator("#chosen li").all_inner_texts()[0].startswith("two.txt")
    page.click("#clear")
    assert page.locator("#chosen").is_hidden() and page.locator("#send").is_disabled()


def test_a_name_that_no_address_can_hold_is_refused_at_once(documents):
    page = documents
    page.select_option("#collection", label="New collection …")
    page.fill("#new-name", "a/b")
    page.set_input_files("#files", [file("a.txt", "Words.")])
    page.click("#send")
    assert "slash" in page.inner_text("#said")
    assert page.locator("#chosen li").count() == 1


def test_the_same_files_again_are_known(documents):
    make(documents, "again", file("a.txt", "Some words."))
    found = make(documents, "again", file("a.txt", "Some words."), file("b.txt", "Other words."))
    assert found["a.txt"][0] == "Already there" and found["b.txt"][0] == "Indexed"


def test_indexing_shows_progress_and_is_cancelled(documents, lively):
    """Another task runs, so this one waits until it is cancelled."""
    page = documents
    make(page, "patient", file("now.txt", "Words."))
    hold = threading.Event()
    lively.app.state.service.jobs.start("other", lambda progress: {"held": hold.wait(300)})
    try:
        page.set_input_files("#files", [file("later.txt", "Later words.")])
        page.click("#send")
        page.wait_for_selector("#job progress")
        assert page.locator("#send").is_disabled()
        page.reload()  # a task is found again
        page.wait_for_selector("#job progress")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator("#job .job-said")).to_contain_text("Cancelled")
    finally:
        hold.set()
    assert page.locator("#job progress").count() == 0


def test_a_collection_is_deleted_after_typing_its_name(documents, lively):
    page = documents
    make(page, "doomed", file("a.txt", "Words."))
    page.get_by_role("button", name="Delete doomed").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "delete-name"
    page.keyboard.type("doome")
    assert page.locator("#delete-yes").is_disabled()
    page.keyboard.press("Enter")
    assert httpx.get(f"{lively.url}/api/dartboard/collections/doomed").status_code == 200
    page.keyboard.press("Escape")
    assert page.locator("#delete").is_hidden()
    page.get_by_role("button", name="Delete doomed").click()
    page.keyboard.type("doomed")
    page.keyboard.press("Enter")
    expect(page.locator("#collections")).not_to_contain_text("doomed")
    assert httpx.get(f"{lively.url}/api/dartboard/collections/doomed").status_code == 404
    assert page.get_by_role("button", name="Delete demo").count() == 0


def test_the_documents_of_a_collection_are_listed(documents, lively):
    documents.get_by_role("button", name="Documents of demo").click()
    rows = documents.locator("#listed tbody tr")
    answer = httpx.get(f"{lively.url}/api/dartboard/collections/demo/documents?limit=200", timeout=60).json()
    expect(rows).to_have_count(answer["total"])
    expect(rows.first).to_contain_text(answer["documents"][0]["id"])
    expect(documents.locator("#listed")).to_be_focused()


def test_trouble_is_told(open_page, tmp_path):
    with serving(tmp_path, upload_bytes=4000) as small:
        page = open_page(expect_errors=True)
        page.goto(f"{small.url}/documents")
        page.wait_for_selector("#collections table")
        page.fill("#new-name", "small")
        page.set_input_files("#files", [file("big.txt", "x" * 9000)])
        page.click("#send")
        page.wait_for_selector("#said .problem")
        assert page.locator("#chosen li").count() == 1  # what was chosen is still there
        page.click("#clear")
        page.set_input_files("#files", [file("fine.txt", "words")])
        page.click("#send")
        page.wait_for_selector("#outcome table")


def test_a_key_is_asked_for_and_used(open_page, tmp_path, report):
    path = tmp_path / "keys.json"
    keys = Keys.open(path, create=True)
    may_read, may_write = keys.create("r", ["read"]), keys.create("w", ["read", "write"])
    with serving(tmp_path, keys=path) as locked:
        shutil.copytree(report, locked.home / "reports" / "clustered")
        page = open_page(expect_errors=True)
        page.goto(f"{locked.url}/documents")
        page.wait_for_selector("#key-form:not([hidden])")
        page.fill("#api-key", may_read)
        page.keyboard.press("Enter")
        page.wait_for_selector("#collections table")
        page.fill("#new-name", "mine")
        page.set_input_files("#files", [file("a.txt", "words")])
        page.click("#send")
        page.wait_for_selector("#said .problem")
        assert "write access" in page.inner_text("#said")
        page.evaluate("key => sessionStorage.setItem('dartboard-key', key)", may_write)
        page.click("#send")
        page.wait_for_selector("#outcome table")
        page.goto(f"{locked.url}/evaluation")
        page.wait_for_selector("#reports table")
        page.get_by_role("button", name="Open the report clustered").click()
        frame = page.frame_locator("#viewer iframe")
        frame.locator("h1").wait_for()
        assert "synthetic_clustered" in frame.locator("h1").inner_text()
        assert may_write not in page.content()


def test_reports_show_their_figures(evaluation, report):
    page = evaluation
    record = json.loads((report / "results.json").read_text())["datasets"][0]
    quality = record["headline"]["quality"]
    shown = {
        row.locator("th").inner_text(): row.locator("td").first.inner_text() for row in rows(page, "#reports")
    }
    assert shown == {name: f"{found[quality]['mean']:.3f}" for name, found in record["systems"].items()}
    assert "dartboard reaches" in page.inner_text("#reports")
    page.get_by_text("Files (").click()
    with page.expect_download() as kept:
        page.get_by_role("button", name="results.json").click()
    assert kept.value.suggested_filename == "clustered-results.json"
    assert Path(kept.value.path()).read_bytes() == (report / "results.json").read_bytes()


def test_a_report_opens_in_a_sandbox(evaluation, lively):
    page = evaluation
    opener = page.get_by_role("button", name="Open the report clustered")
    opener.focus()
    page.keyboard.press("Enter")
    frame = page.frame_locator("#viewer iframe")
    frame.locator("h1").wait_for()
    assert page.evaluate("document.activeElement.id") == "viewer-title"
    assert page.get_attribute("#viewer iframe", "sandbox") == ""
    body = frame.locator("body")
    assert body.evaluate("body => getComputedStyle(body).fontSize") == "15px"  # its style is in force
    with page.expect_popup() as tab:
        page.get_by_role("link", name="Open in a tab").click()
    tab.value.wait_for_load_state()
    assert tab.value.title() == "Evaluation: synthetic_clustered"
    tab.value.close()
    page.click("#viewer-close")
    assert page.locator("#viewer").is_hidden()
    assert page.evaluate("document.activeElement.textContent") == "Open"


def test_script_in_a_report_does_not_run(open_page, lively):
    folder = lively.home / "reports" / "hostile"
    folder.mkdir()
    (folder / "report.html").write_text(
        "<h1>Hostile</h1><script>document.title='ran';parent.watched.ran=1</script>"
        "<img src=x onerror=\"document.querySelector('h1').textContent='ran'\">"
    )
    (folder / "results.json").write_text('{"datasets": []}')
    try:
        page = open_page(expect_errors=True)
        page.goto(f"{lively.url}/evaluation")
        page.get_by_role("button", name="Open the report hostile").click()
        frame = page.frame_locator("#viewer iframe")
        frame.locator("h1").wait_for()
        page.wait_for_timeout(300)  # timing: nothing may happen meanwhile
        assert frame.locator("h1").inner_text() == "Hostile"
        assert page.evaluate("window.watched.ran") == 0
    finally:
        shutil.rmtree(folder)


def test_a_setting_is_measured(evaluation):
    page = evaluation
    assert page.input_value("#dataset") == "synthetic_clustered"
    page.get_by_label("random").check()
    page.get_by_label("precision", exact=True).check()
    page.fill("#k", "3")
    page.click("#start")
    page.wait_for_selector("#outcome table")
    heads = page.locator("#outcome thead th").all_inner_texts()
    assert heads == ["System", "subtopic_recall@3", "ndcg@3", "recall@3", "precision@3", "diversity"]
    assert "best subtopic_recall@3 first" in page.inner_text("#outcome caption")
    figures = [float(row.locator("td").first.inner_text()) for row in rows(page, "#outcome")]
    assert figures == sorted(figures, reverse=True)
    systems = [row.locator("th").inner_text() for row in rows(page, "#outcome")]
    assert set(systems) == {"this setting", "cosine", "mmr-0.7", "dedup-0.90", "random"}
    assert page.locator("#outcome td.best").count() >= 4
    page.reload()  # the reader's own result is shown again, with the form that it belongs to
    page.wait_for_selector("#outcome table")
    assert page.input_value("#dataset") == "synthetic_clustered" and page.input_value("#k") == "3"
    assert page.input_value("#sigma") == "auto"


def test_what_others_measured_is_not_shown_as_ones_own(evaluation, lively):
    asked = {"dataset_name": "synthetic_clustered", "metrics": ["ndcg"], "background": True}
    job = lively.app.state.service.jobs.get(lively.post("evaluate", json=asked)["job_id"])
    until(lambda: job.state == "done")
    page = evaluation
    with page.expect_response("**/jobs"):
        page.reload()
    page.wait_for_timeout(100)  # timing: nothing may happen meanwhile
    assert page.locator("#outcome table").count() == 0


def test_a_short_name_is_not_broken(documents):
    row = {"text": "Words. " * 30}
    long_remark = file("beta.csv", "text,b\n" + row["text"] + ",1\n")
    make(documents, "short names", long_remark, file("empty.txt", ""))
    heights = documents.locator("#outcome tbody th span").evaluate_all(
        "all => all.map((one) => [one.textContent, one.getClientRects().length])"
    )
    lines = dict(heights)
    assert lines["beta.csv"] == 1 and lines["empty.txt"] == 1
    assert no_sideways_scrolling(documents)


def test_measuring_is_refused_and_fails_in_words(evaluation):
    page = evaluation
    while page.locator("#metrics input:checked").count():
        page.locator("#metrics input:checked").first.uncheck()
    page.click("#start")
    assert "at least one measure" in page.inner_text("#said")
    page.get_by_label("subtopic recall").check()
    page.get_by_role("button", name="Measure on support").click()
    assert page.input_value("#dataset") == "support"
    page.keyboard.press("Enter")  # the button that starts it has the focus
    page.wait_for_selector("#job .problem")
    assert "cannot answer subtopic_recall" in page.inner_text("#job")
    assert page.locator("#start").is_enabled()


def test_a_measurement_is_cancelled(evaluation, lively):
    page = evaluation
    jobs = lively.app.state.service.jobs
    hold = threading.Event()
    jobs.start("other", lambda progress: {"held": hold.wait(60)})  # keeps the one worker busy
    try:
        page.select_option("#dataset", "synthetic_clustered")
        page.click("#start")
        page.wait_for_selector("#job progress")
        page.locator("#job").get_by_role("button", name="Cancel").click()
        expect(page.locator("#job .job-said")).to_contain_text("Cancelled")
    finally:
        hold.set()


def test_saved_cases_are_listed_downloaded_and_removed(evaluation, lively):
    page = evaluation
    hostile = "</span><script>window.watched.ran=1</script> why?"
    lively.post("cases", json=case(hostile, name="other"))
    page.reload()
    page.wait_for_selector("#cases article")
    other = page.locator("#cases article").filter(has=page.get_by_role("heading", name="other"))
    other.get_by_text("Questions", exact=True).click()
    assert hostile in other.inner_text() and "2 marked of 6" in other.inner_text()
    assert page.evaluate("window.watched.ran") == 0
    other.get_by_text("in a terminal").click()
    command = "dartboard eval --dataset other --data HOME/cases --systems quick --out HOME/reports/other"
    other.get_by_role("button", name=f"Copy: {command}").click()
    assert page.evaluate("navigator.clipboard.readText()") == command
    with page.expect_download() as kept:
        other.get_by_role("button", name="Download other").click()
    with zipfile.ZipFile(kept.value.path()) as archive:
        assert "other/qrels/test.tsv" in archive.namelist()
    other.get_by_role("button", name="Remove the case").click()
    expect(other).to_have_count(0)
    assert "other" not in {
        one["name"] for one in httpx.get(f"{lively.url}/api/dartboard/cases").json()["sets"]
    }


@pytest.mark.parametrize(("width", "scheme"), [(380, "light"), (1900, "dark")])
@pytest.mark.parametrize("name", ["documents", "evaluation"])
def test_pages_fit_any_width_and_theme(open_page, lively, name, width, scheme):
    lively.post("cases", json=case("A question " + "x" * 300))
    page = open_page(width=width, color_scheme=scheme)
    page.goto(f"{lively.url}/{name}")
    page.wait_for_selector("main table")
    assert no_sideways_scrolling(page)
    if name == "evaluation":
        page.get_by_role("button", name="Open the report clustered").click()
        page.frame_locator("#viewer iframe").locator("h1").wait_for()
        page.get_by_text("Questions", exact=True).first.click()
        assert no_sideways_scrolling(page)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, a[href], input, select")]
             .filter((one) => one.checkVisibility())
             .filter((one) => !(one.ariaLabel || one.innerText?.trim() || one.labels?.length))
             .map((one) => one.outerHTML)"""
    )
    assert unnamed == []


@pytest.mark.parametrize("name", ["documents", "evaluation"])
def test_everything_is_reached_from_the_keyboard(open_page, lively, name):
    page = open_page()
    page.goto(f"{lively.url}/{name}")
    page.wait_for_selector("main table")
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("button, a[href], input, select, summary")]
             .filter((one) => one.checkVisibility() && !one.disabled).length"""
    )
    reached = set()
    for _ in range(wanted + 40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("[...document.querySelectorAll('*')].indexOf(document.activeElement)"))
    missed = page.evaluate(
        """(reached) => { const all = [...document.querySelectorAll("*")];
             return [...document.querySelectorAll("button, a[href], input, select, summary")]
               .filter((one) => one.checkVisibility() && !one.disabled && !reached.includes(all.indexOf(one)))
               .map((one) => one.outerHTML); }""",
        sorted(reached),
    )
    assert missed == []


def test_pages_have_a_strict_policy(lively):
    for path in ("documents", "evaluation"):
        answer = httpx.get(f"{lively.url}/{path}")
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy and "script-src 'self'" in policy and "style-src 'self'" in policy
        assert "<style" not in answer.text and " style=" not in answer.text and " onclick" not in answer.text
        assert answer.headers["cache-control"] == "no-cache"
    assert "frame-src 'self'" in policy
    assert "frame-src" not in httpx.get(f"{lively.url}/documents").headers["content-security-policy"]
