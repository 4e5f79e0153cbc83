"""A run that can be killed anywhere: judge doors through an endpoint, with a journal, and write a file."""

import json
from pathlib import Path

from dartboard.http_client import Patience
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.journal import Journal
from dartboard.llm.parallel import run as in_parallel
from dartboard.mining.judges.chat_judge import OpenAIJudge
from dartboard.mining.judges.ensemble import journaled
from tests.mining.faulty_server import door_tasks

QUICK = Patience(timeout=60, attempts=6, first_wait=0.001, longest_wait=0.002)


def door_judge(url: str) -> OpenAIJudge:
    return OpenAIJudge("doorman", url, api_key="sk-secret", patience=QUICK, max_output_tokens=1024)


def judge_all(judge, tasks, journal=None, *, concurrency=8, limiter=None):
    """The verdicts on tasks, in order."""
    asked = journaled(judge, journal)
    limiter = limiter or CallLimiter(CallLimits(concurrency=concurrency))
    return in_parallel(lambda task: asked.judge(task[0], (task[1],)), tasks, limiter)


def run(url: str, folder: Path, count: int) -> None:
    """Resume the journal in ``folder``, judge what is missing, write ``verdicts.jsonl`` whole."""
    tasks = door_tasks(count)
    with Journal.open(folder / "journal.jsonl", resume=True) as journal, door_judge(url) as judge:
        verdicts = judge_all(judge, tasks, journal)
    lines = [
        json.dumps([case.id, verdict.label, verdict.evidence, verdict.missing, verdict.reason])
        for (case, _), verdict in zip(tasks, verdicts, strict=True)
    ]
    unfinished = folder / "verdicts.jsonl.new"
    unfinished.write_text("\n".join(lines) + "\n")
    unfinished.replace(folder / "verdicts.jsonl")
