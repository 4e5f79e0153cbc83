"""A language model's answer on the page: text as it comes, citations that lead to passages."""

import pytest
from playwright.sync_api import expect

from tests.llm.chat_server import ChatServer, ModelServer, Waiting, openai_events, streamed
from tests.web.serving import serving


@pytest.fixture
def visit(open_page, tmp_path):
    """The playground of a service that asks a given server."""
    running = []

    def make(server, **options):
        service = serving(tmp_path, answer_model=f"openai:clever@{server.url}")
        served = service.__enter__()
        running.append(service)
        page = open_page(**options)
        page.goto(served.url)
        page.wait_for_selector(".card")
        return page

    yield make
    for service in running:
        service.__exit__(None, None, None)


def test_without_a_model_there_is_no_panel(page):
    expect(page.locator("#answer-panel")).to_be_hidden()


def test_an_answer_cites_the_picks(visit):
    with ModelServer() as server:
        page = visit(server)
        expect(page.locator("#answer-panel")).to_contain_text("by openai:clever")
        page.get_by_role("button", name="Answer", exact=True).click()
        expect(page.locator(".citation")).to_have_text(["[1]", "[2]"])
        picks = page.locator(".column.dartboard .card-name").all_inner_texts()
        page.locator(".citation").nth(1).click()
        expect(page.locator("#why")).to_be_visible()
        expect(page.locator("#why")).to_contain_text(picks[1])
        passages = page.locator(".column.dartboard .card").all_inner_texts()
        first = page.locator(".answer-text").inner_text().split(" [1]")[0]
        assert first[:40] in " ".join(passages[0].split())
        page.locator("#query").fill("How do I replay messages?")
        page.locator("#query").press("Enter")
        expect(page.locator(".answer-text")).to_have_count(0)


def test_words_come_as_they_are_written_and_can_be_stopped(visit):
    waiting = Waiting("First <b>words</b> ")
    with ChatServer(waiting) as server:
        page = visit(server)
        page.locator("#answer-go").click()
        expect(page.locator(".answer-text")).to_have_text("First <b>words</b> ")
        assert not waiting.go.is_set()
        page.locator("#answer-stop").click()
        expect(page.locator("#answer")).to_contain_text("Stopped: this is not all.")
        assert waiting.left.wait(60)  # the model was hung up on
        waiting.go.set()


def test_hostile_answers_stay_text(visit):
    hostile = "<img src=x onerror=alert(1)> [1] <script>alert(2)</script> \x1b[31m [9] 😀 [2]"
    with ChatServer(streamed(openai_events(hostile))) as server:
        page = visit(server)
        page.locator("#answer-go").click()
        expect(page.locator(".citation")).to_have_text(["[1]", "[2]"])
        expect(page.locator("#answer")).to_contain_text(
            "<img src=x onerror=alert(1)> [1] <script>alert(2)</script>"
        )
        expect(page.locator("#answer")).to_contain_text("[9]: there is no such passage.")
        assert page.locator("#answer img, #answer script").count() == 0


def test_trouble_is_told(visit):
    with ChatServer((401, b"bad key", {})) as server:
        page = visit(server, expect_errors=True)
        page.locator("#answer-go").click()
        expect(page.locator("#answer .problem")).to_contain_text("the language model refuses this service")
        expect(page.locator("#answer-go")).to_have_text("Answer again")
