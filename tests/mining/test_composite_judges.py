"""Votes, and judges by name."""

from dataclasses import dataclass

import pytest

from dartboard.errors import ConfigError
from dartboard.mining.cases import Case
from dartboard.mining.judges import AnswerJudge, CheckJudge, EnsembleJudge, judge_by_name
from dartboard.mining.judges.base import Verdict

CASE = Case(id="1", question="Who?")


@dataclass
class Says:
    label: str
    name: str = "says"
    prompt_version: str = "v"

    def judge(self, case, contexts, *, attempt=0):
        evidence = "quote" if self.label == "YES" else ""
        missing = "" if self.label == "YES" else f"for {self.name}"
        return Verdict(label=self.label, evidence=evidence, missing=missing, reason="so")


@pytest.mark.parametrize(
    ("votes", "label"),
    [
        (("YES", "YES", "NO"), "YES"),
        (("YES", "NO"), "UNSURE"),
        (("YES", "NO", "UNSURE"), "UNSURE"),
        (("YES", "YES", "NO", "UNSURE"), "UNSURE"),
        (("NO", "UNSURE", "NO"), "NO"),
        (("UNSURE", "UNSURE", "YES"), "UNSURE"),
    ],
)
def test_a_majority_is_more_than_half(votes, label):
    verdict = EnsembleJudge([Says(vote) for vote in votes]).judge(CASE, [])
    assert verdict.label == label
    assert verdict.votes == votes
    assert bool(verdict.evidence) == (label == "YES")


def test_disagreement_is_recorded():
    verdict = EnsembleJudge([Says("YES", "a"), Says("NO", "b"), Says("YES", "c")]).judge(CASE, [])
    assert verdict.reason == "2 of 3 judges say YES; b says NO: so"
    assert (verdict.judge, verdict.prompt_version) == ("ensemble(a, b, c)", "v")
    assert EnsembleJudge([Says("YES", "a"), Says("NO", "b")]).judge(CASE, []).missing == "for b"


def test_one_judge_is_no_ensemble():
    with pytest.raises(ConfigError, match="at least 2"):
        EnsembleJudge([Says("YES")])


def test_judges_by_name(monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "AIza")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert judge_by_name("answers") == AnswerJudge()
    assert isinstance(judge_by_name("check"), CheckJudge)
    assert judge_by_name("check:answers").name == "check(answers)"
    assert judge_by_name("gemini").name == "gemini:gemini-3-pro-preview"
    proxied = judge_by_name("gemini:models/g@http://127.0.0.1:1/v1beta/")
    assert proxied.name == "gemini:models/g@http://127.0.0.1:1/v1beta"
    assert (proxied.chat.model, proxied.chat.endpoint.base_url) == ("models/g", "http://127.0.0.1:1/v1beta")
    both = judge_by_name("ensemble:gemini:g@http://127.0.0.1:1, gemini:g@http://127.0.0.1:2")
    assert both.name == "ensemble(gemini:g@http://127.0.0.1:1, gemini:g@http://127.0.0.1:2)"
    assert judge_by_name("openai:gpt-4o-mini").name == "openai:gpt-4o-mini"
    local = judge_by_name("openai:a:8b@http://127.0.0.1:1/v1/", prompt_version="seed-1")
    assert (local.name, local.prompt_version) == ("openai:a:8b@http://127.0.0.1:1/v1", "seed-1")
    both = judge_by_name("ensemble:answers, openai:x@http://127.0.0.1:1/v1")
    assert both.name == "ensemble(answers, openai:x@http://127.0.0.1:1/v1)"
    assert both.prompt_version == "evidence-3"


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "oracle",
        "answers:x",
        "check:",
        "gemini:",
        "gemini:g@",
        "gemini:@http://x",
        "gemini:g@ftp://x",
        "openai:m@",
        "openai",
        "openai:",
        "openai:@http://x",
        "ensemble:",
        "ensemble:a,,b",
        "ensemble:answers,ensemble:check",
        "openai:m@ftp://x",
    ],
)
def test_unknown_names_are_refused(spec, monkeypatch):
    monkeypatch.setenv("GEMINI_API_KEY", "AIza")
    with pytest.raises(ConfigError):
        judge_by_name(spec)
