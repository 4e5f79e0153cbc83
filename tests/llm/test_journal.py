"""Answers on disk before they are used, and calls in parallel: nothing is lost, nothing is asked twice."""

import errno
import json
import threading

import pytest

from dartboard.errors import (
    BudgetError,
    ConfigError,
    DatasetError,
    EndpointError,
    StoreError,
    StoreLockedError,
)
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.chat import ChatAnswer
from dartboard.llm.errors import NoAnswersError, RefusedError
from dartboard.llm.journal import Journal, JournaledChat
from dartboard.llm.parallel import run
from dartboard.llm.usage import Usage, record_spending

CALL = Usage(calls=1, input_tokens=10, output_tokens=2)


class Model:
    """Answers with the prompt, unless it is told otherwise; counts what it is asked."""

    full_name = "openai:m@http://here"
    max_output_tokens = 100

    def __init__(self, trouble=None):
        self.asked = []
        self.trouble = trouble or {}

    def complete(self, text, *, system="", attempt=0):
        self.asked.append((text, system, attempt))
        record_spending(CALL)
        trouble = self.trouble.get(text, "")
        if isinstance(trouble, BaseException):
            raise trouble
        return ChatAnswer(text="" if trouble else text.upper(), usage=CALL, trouble=trouble)

    def expected(self, text, system=""):
        return CALL

    def close(self):
        pass


def test_what_is_known_is_not_asked_again(tmp_path):
    path = tmp_path / "deep" / "journal.jsonl"
    with Journal.open(path) as journal:
        chat = JournaledChat(model := Model(), journal)
        assert [chat.complete("a").text, chat.complete("a").text, chat.complete("b").text] == ["A", "A", "B"]
        assert chat.complete("a", system="s").text == chat.complete("a", attempt=1).text == "A"
        assert len(model.asked) == 4 == len(journal) and journal.usage.calls == 4
    with Journal.open(path, resume=True) as journal:
        chat = JournaledChat(again := Model(), journal)
        assert chat.complete("b").text == "B" and again.asked == []
        assert chat.expected("b") == Usage() and chat.expected("c") == CALL
        assert journal.usage == Usage(calls=4, input_tokens=40, output_tokens=8)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert all(line.keys() == {"key", "text", "trouble", "usage"} for line in lines)


def test_an_answer_with_trouble_counts_and_is_asked_for_again_when_a_run_goes_on(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal.open(path) as journal:
        chat = JournaledChat(model := Model({"a": "refused", "b": EndpointError("down")}), journal)
        assert chat.complete("a").trouble == chat.complete("a").trouble == "refused"
        with pytest.raises(EndpointError):
            chat.complete("b")
        assert len(model.asked) == 2 and journal.usage.calls == 2
    with Journal.open(path, resume=True) as journal:
        assert len(journal) == 0 and journal.usage.calls == 2
        assert JournaledChat(Model(), journal).complete("a").text == "A"


def test_a_torn_line_is_skipped_wherever_a_run_was_killed(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal.open(path) as journal:
        for text in "abc":
            JournaledChat(Model(), journal).complete(text)
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        if cut and b"\n" not in whole[:cut]:
            continue
        with Journal.open(path, resume=True) as journal:
            assert len(journal) == whole[:cut].count(b"\n")
            JournaledChat(Model(), journal).complete("z")
        with Journal.open(path, resume=True) as journal:
            assert len(journal) >= whole[:cut].count(b"\n") + 1


def test_a_journal_is_ours_and_nobody_elses(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal.open(path) as journal:
        JournaledChat(Model(), journal).complete("a")
        with pytest.raises(StoreLockedError):
            Journal.open(path, resume=True)
    with pytest.raises(ConfigError, match="resume"):
        Journal.open(path)
    mine = tmp_path / "thesis.txt"
    mine.write_text("Chapter one.\n")
    with pytest.raises(DatasetError, match="not a journal"):
        Journal.open(mine, resume=True)
    assert mine.read_text() == "Chapter one.\n"


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal.open(tmp_path / "journal.jsonl") as journal:
        monkeypatch.setattr("dartboard.llm.journal.os.fsync", full)
        with pytest.raises(StoreError, match=r"journal\.jsonl.*No space"):
            JournaledChat(Model(), journal).complete("a")


def limiter(**limits):
    return CallLimiter(CallLimits(**limits))


def test_results_come_in_order_and_in_parallel():
    barrier, heard = threading.Barrier(4), []

    def double(number):
        barrier.wait(60)
        return 2 * number

    assert run(double, range(8), limiter(concurrency=4), lambda *at: heard.append(at)) == [*range(0, 16, 2)]
    assert heard == [(number, 8) for number in range(1, 9)]


def failing(*wrong, error=EndpointError):
    def call(number):
        if number in wrong:
            raise error(f"number {number}")
        return number

    return call


def test_one_failure_does_not_keep_the_others_from_their_answers():
    done = []
    with pytest.raises(EndpointError, match=r"1 calls failed.*number 3.*9 of 10"):
        run(failing(3), range(10), limiter(), lambda count, _: done.append(count))
    assert len(done) == 9


@pytest.mark.parametrize("error", [RefusedError, BudgetError, NoAnswersError])
def test_what_is_no_use_ends_it(error):
    asked = []

    def call(number):
        asked.append(number)
        raise error("no")

    with pytest.raises(error, match="0 of 100"):
        run(call, range(100), limiter(concurrency=1))
    assert asked == [0]


def test_many_failures_in_a_row_end_it():
    asked = []

    def call(number):
        asked.append(number)
        raise EndpointError("down")

    with pytest.raises(NoAnswersError, match="10 calls in a row"):
        run(call, range(100), limiter(concurrency=1))
    assert len(asked) == 10


def test_a_row_of_refusals_about_one_question_is_no_broken_model():
    limits = limiter(concurrency=1)
    for _ in range(50):
        limits.record("m", "one question", "refused")
    limits.record("m", "another")
    for _ in range(9):
        limits.record("m", "a", "refused")
    with pytest.raises(NoAnswersError):
        limits.record("m", "b", "refused")


def test_calls_under_way_are_kept_when_a_run_is_stopped(tmp_path):
    """Ctrl-C while a call is made: it is waited for, and its answer is in the journal."""
    with Journal.open(tmp_path / "j.jsonl") as journal:
        chat = JournaledChat(Model(), journal)

        def call(text):
            if text == "stop":
                raise KeyboardInterrupt
            return chat.complete(text)

        with pytest.raises(KeyboardInterrupt):
            run(call, ["a", "stop", *"bcdefgh"], limiter(concurrency=1))
        assert len(journal) >= 1
