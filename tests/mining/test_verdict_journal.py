"""A journal survives what happens to files and processes."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from threading import Barrier, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, DatasetError, EndpointError, StoreError, StoreLockedError
from dartboard.llm.call_limits import CallLimiter
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.journaled_judge import JournaledJudge, journaled, key_of
from dartboard.mining.judges import AnswerJudge, EnsembleJudge
from dartboard.mining.judges.base import Verdict
from dartboard.mining.verdict_journal import Journal

USAGE = Usage(calls=1, input_tokens=10, output_tokens=2, cost=0.1)
VERDICT = Verdict(label="YES", evidence="“quote”\n", reason="r", judge="j", votes=("YES", "NO"), usage=USAGE)
CASE = Case(id="1", question="Who?", answers=("Ann",))
CONTEXT = Document("d", "It was Ann.")


def filled(path, count=3):
    with Journal.open(path) as journal:
        for at in range(count):
            journal.add(f"key-{at}", replace(VERDICT, missing=str(at)), USAGE)
    return path


def test_what_is_written_comes_back(tmp_path):
    path = filled(tmp_path / "new" / "j.jsonl")
    with Journal.open(path, resume=True) as journal:
        assert len(journal) == 3
        assert journal.get("key-1") == replace(VERDICT, missing="1")
        assert journal.get("key-9") is None
        assert journal.usage == Usage(calls=3, input_tokens=30, output_tokens=6, cost=0.3)
        journal.add("key-9", None, Usage(calls=1, unanswered=2))
    before = path.read_bytes()
    with Journal.open(path, resume=True) as journal:
        assert journal.get("key-9") is None
        assert journal.usage.unanswered == 2
    assert path.read_bytes() == before


def test_equal_runs_write_equal_bytes(tmp_path):
    assert filled(tmp_path / "a").read_bytes() == filled(tmp_path / "b").read_bytes()


def test_an_existing_journal_is_not_written_over(tmp_path):
    path = filled(tmp_path / "j")
    with pytest.raises(ConfigError, match="resume"):
        Journal.open(path)
    assert len(path.read_bytes().splitlines()) == 4


def test_every_torn_end_is_dropped_with_a_warning(tmp_path, caplog):
    whole = filled(tmp_path / "j").read_bytes()
    *_, start = (at for at, byte in enumerate(whole[:-1], start=1) if byte == 10)
    for end in {*range(start + 1, len(whole), 37), len(whole) - 1}:
        path = tmp_path / f"torn-{end}"
        path.write_bytes(whole[:end])
        caplog.clear()
        with Journal.open(path, resume=True) as journal:
            assert len(journal) == 2
            assert "torn" in caplog.text
            journal.add("key-2", replace(VERDICT, missing="2"), USAGE)
        assert path.read_bytes() == whole


def test_a_last_line_of_rubbish_is_dropped(tmp_path):
    path = filled(tmp_path / "j")
    whole = path.read_bytes()
    path.write_bytes(whole + b"\0\0\0\n")
    with Journal.open(path, resume=True) as journal:
        assert len(journal) == 3
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "change", [(b'"YES"', b'"NOO"'), (b"{", b""), (b'"input_tokens":10', b'"input_tokens":90')]
)
def test_damage_in_the_middle_is_named_by_its_line(tmp_path, change):
    path = filled(tmp_path / "j")
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(*change, 1)
    path.write_bytes(b"".join(lines))
    with pytest.raises(DatasetError, match=r"j:3: this line is damaged"):
        Journal.open(path, resume=True)
    assert path.read_bytes() == b"".join(lines)


def test_other_files_are_not_taken_for_journals(tmp_path):
    path = tmp_path / "j"
    path.write_text("an important letter\nof two lines\n")
    with pytest.raises(DatasetError, match="j:1"):
        Journal.open(path, resume=True)
    assert path.read_text().startswith("an important letter")
    from dartboard.mining.verdict_journal import write_line

    for letter in (b"an important letter", b"{}", b'{"crc":"0"}\n'):
        path.write_bytes(letter)
        with pytest.raises(DatasetError, match="j:1: not a journal"):
            Journal.open(path, resume=True)
        assert path.read_bytes() == letter
    for torn in (b"", b'{"crc"', b"\0" * 50):
        path.write_bytes(torn)
        Journal.open(path, resume=True).close()
    path.write_bytes(write_line({"journal": 99}))
    with pytest.raises(DatasetError, match="format 1"):
        Journal.open(path, resume=True)
    for entry in ({"key": "x"}, {"key": "x", "usage": {"gold": 1}, "verdict": None}):
        path.write_bytes(write_line({"journal": 1}) + write_line(entry) + write_line(entry))
        with pytest.raises(DatasetError, match="j:2"):
            Journal.open(path, resume=True)
    usage, verdict = {"calls": 1}, {"label": "YES", "votes": [], "colour": "red"}
    path.write_bytes(
        write_line({"journal": 1}) + write_line({"key": "x", "usage": usage, "verdict": verdict})
    )
    with pytest.raises(DatasetError, match="colour"):
        Journal.open(path, resume=True)


def test_a_second_run_is_kept_out_until_the_first_has_ended(tmp_path):
    path = tmp_path / "j"
    code = f"from dartboard.mining.verdict_journal import Journal; Journal.open({str(path)!r}, resume=True)"
    with Journal.open(path):
        with pytest.raises(StoreLockedError, match="another run"):
            Journal.open(path, resume=True)
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "StoreLockedError" in other.stderr
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_full_disk_takes_the_half_line_back(tmp_path, monkeypatch):
    path = filled(tmp_path / "j")
    whole = path.read_bytes()
    with Journal.open(path, resume=True) as journal:

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match="No space left"):
            journal.add("key-3", VERDICT, USAGE)
        monkeypatch.undo()
        assert path.read_bytes() == whole
        journal.add("key-3", VERDICT, USAGE)
    with Journal.open(path, resume=True) as journal:
        assert len(journal) == 4
    with pytest.raises(StoreError, match="closed"):
        journal.add("key-4", VERDICT, USAGE)


def test_a_folder_is_no_journal(tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        Journal.open(tmp_path)


class Counting:
    name = "counting"

    def __init__(self):
        self.asked = 0

    def judge(self, case, contexts, *, attempt=0):
        self.asked += 1
        return replace(VERDICT, reason=str(self.asked))


def test_a_journaled_judge_asks_once(tmp_path):
    inner = Counting()
    with Journal.open(tmp_path / "j") as journal:
        judge = JournaledJudge(inner, journal)
        first = judge.judge(CASE, [CONTEXT])
        assert judge.judge(CASE, [CONTEXT]) == first
        assert judge.judge(CASE, [CONTEXT], attempt=1) != first
        assert judge.judge(CASE, []) != first
        assert (judge.name, judge.prompt_version) == ("counting", "")
    with Journal.open(tmp_path / "j", resume=True) as journal:
        assert JournaledJudge(inner, journal).judge(CASE, [CONTEXT]) == first
    assert inner.asked == 3


def test_equal_questions_at_the_same_time_are_asked_once(tmp_path):
    inner, barrier, said = Counting(), Barrier(6), []
    with Journal.open(tmp_path / "j") as journal:
        judge = JournaledJudge(inner, journal)

        def ask():
            barrier.wait()
            said.append(judge.judge(CASE, [CONTEXT]))

        threads = [Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert inner.asked == 1
    assert len(set(map(repr, said))) == 1


class Fails:
    name = "fails"

    def judge(self, case, contexts, *, attempt=0):
        CallLimiter().settle(USAGE, USAGE, USAGE)
        raise EndpointError("cut")


def test_what_a_failed_call_cost_is_kept_and_the_call_repeated(tmp_path):
    with Journal.open(tmp_path / "j") as journal:
        judge = JournaledJudge(Fails(), journal)
        for times in (1, 2):
            with pytest.raises(EndpointError):
                judge.judge(CASE, [CONTEXT])
            assert (len(journal), journal.usage.calls) == (0, times)


def test_members_of_an_ensemble_are_journaled_one_by_one(tmp_path):
    first = Counting()
    with Journal.open(tmp_path / "j") as journal:
        broken = journaled(EnsembleJudge([first, Fails()]), journal)
        for _ in range(2):
            with pytest.raises(EndpointError):
                broken.judge(CASE, [CONTEXT])
        whole = journaled(EnsembleJudge([first, AnswerJudge()]), journal)
        verdict = whole.judge(CASE, [CONTEXT])
        assert verdict == whole.judge(CASE, [CONTEXT])
    assert verdict.votes == ("YES", "YES")
    assert verdict.judge == "ensemble(counting, answers)"
    assert first.asked == 1


def test_the_key_changes_with_all_that_a_verdict_depends_on():
    judge = AnswerJudge()
    keys = {
        key_of(judge, CASE, [CONTEXT], 0),
        key_of(judge, CASE, [CONTEXT], 1),
        key_of(judge, CASE, [], 0),
        key_of(judge, CASE, [CONTEXT, CONTEXT], 0),
        key_of(judge, CASE, [Document("d", "other")], 0),
        key_of(judge, CASE, [Document("e", CONTEXT.text)], 0),
        key_of(judge, replace(CASE, question="When?"), [CONTEXT], 0),
        key_of(judge, replace(CASE, answers=("Bob",)), [CONTEXT], 0),
        key_of(judge, replace(CASE, facets=(("Ann",),)), [CONTEXT], 0),
        key_of(Counting(), CASE, [CONTEXT], 0),
    }
    assert len(keys) == 10
    assert key_of(judge, replace(CASE, id="2", place="f:1"), [CONTEXT], 0) in keys


@given(st.text(), st.text(), st.floats(0, 1e6))
def test_any_text_comes_back(evidence, reason, cost):
    from dartboard.mining.verdict_journal import plain_verdict, read_line, read_verdict, write_line

    usage = Usage(calls=1, cost=cost)
    verdict = Verdict(label="NO", evidence=evidence, reason=reason, usage=usage)
    line = write_line({"verdict": plain_verdict(verdict)})
    assert line.count(b"\n") == 1
    assert read_verdict(read_line(line[:-1])["verdict"], usage) == verdict
    assert json.loads(line)["crc"]
