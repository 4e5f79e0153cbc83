"""A run that can be killed anywhere: judge doors through an endpoint, with a journal, and write a file."""

import json
from pathlib import Path

from dartboard.http_client import Patience
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.usage import Prices
from dartboard.mining.journaled_judge import JournaledJudge
from dartboard.mining.judge_runner import judge_many
from dartboard.mining.judges.chat_judge import OpenAIJudge
from dartboard.mining.verdict_journal import Journal
from tests.mining.faulty_server import door_tasks

QUICK = Patience(timeout=60, attempts=6, first_wait=0.001, longest_wait=0.002)
PRICES = Prices(input_per_million=2.0, output_per_million=12.0)


def door_judge(url: str) -> OpenAIJudge:
    return OpenAIJudge(
        "doorman", url, api_key="sk-secret", prices=PRICES, patience=QUICK, max_output_tokens=1024
    )


def run(url: str, folder: Path, count: int) -> None:
    """Resume the journal in ``folder``, judge what is missing, write ``verdicts.jsonl`` whole."""
    with Journal.open(folder / "journal.jsonl", resume=True) as journal, door_judge(url) as judge:
        lines = [
            json.dumps([task.case.id, verdict.label, verdict.evidence, verdict.missing, verdict.reason])
            for task, verdict in judge_many(
                JournaledJudge(judge, journal), door_tasks(count), CallLimiter(CallLimits(concurrency=8))
            )
        ]
    unfinished = folder / "verdicts.jsonl.new"
    unfinished.write_text("\n".join(lines) + "\n")
    unfinished.replace(folder / "verdicts.jsonl")
