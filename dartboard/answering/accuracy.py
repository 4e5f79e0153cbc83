"""The end-to-end measure: given the passages that a system picks, does a model name the known answer?

Each system's first k passages go to the model with the prompt of ``dartboard ask``. Systems that pick the
same passages in the same order share an answer. Everything that is paid for is in a journal before it is
used, so a run that is killed goes on without paying twice; calls run in parallel within limits, as those of
judges do. Of a system with several seeds the first is asked about.

Strings are compared as the offline judge of :mod:`dartboard.mining` compares them: by words, numbers and
dates, whatever their spelling. Of an answer in several parts (RGB's) each has to be there. The numbers of
citations are not looked at, a bare yes or no counts where the answer begins with it, and an answer that says
that there is none is none. (After Pickett et al., 2024, and RGB's own rule, Chen et al., 2024.)
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.answering.citations import Passage, without_citations
from dartboard.answering.prompts import DEFAULT_PROMPT, NO_ANSWER, write_prompt
from dartboard.errors import BudgetError, ConfigError, EndpointError
from dartboard.evaluation.experiment import Outcome, add_measure
from dartboard.evaluation.measures import Measure, Scores
from dartboard.evaluation.runner import Listener, Runs, silent
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.llm.call_limits import CallLimiter, CallLimits, current_limiter
from dartboard.llm.prompts import Prompt
from dartboard.llm.reply_parser import without_thoughts
from dartboard.llm.streaming_chat import StreamingChat
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.journaled_judge import JournaledJudge
from dartboard.mining.judge_runner import Estimate, Task, estimate, judge_many
from dartboard.mining.judges.answer_judge import facets_of, first_match
from dartboard.mining.judges.base import Verdict
from dartboard.mining.verdict_journal import Journal
from dartboard.plain_text import heading_of, plain_text
from dartboard.types import Dataset

_BARE = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
_FIRST_WORD = re.compile(r"\W*(\w+)")


def cases_of(dataset: Dataset) -> dict[str, Case]:
    """The questions whose answer is known, by query id."""
    answers = dataset.metadata.get("answers", {})
    parts = dataset.metadata.get("answer_parts", {})
    cases = {
        query_id: Case(
            id=query_id,
            question=text,
            answers=tuple(answers.get(query_id, ())),
            facets=tuple(map(tuple, parts.get(query_id, ()))),
        )
        for query_id, text in zip(dataset.query_ids, dataset.queries, strict=True)
        if text.strip()
    }
    return {query_id: case for query_id, case in cases.items() if facets_of(case)}


def holds_answer(text: str, case: Case) -> bool:
    """Whether every part of the known answer stands in the text."""
    if text.lstrip().startswith(NO_ANSWER):
        return False
    said = without_citations(text)
    return all(_says(said, facet) for facet in facets_of(case))


def _says(text: str, spellings: tuple[str, ...]) -> bool:
    bare = {_BARE.get(one.strip(" .!").lower()) for one in spellings}
    if None in bare:
        return first_match(spellings, [text]) is not None
    first = _FIRST_WORD.match(text)
    return first is not None and _BARE.get(first[1].lower()) in bare


Confirm = Callable[[Estimate], bool]
"""Hears what is about to be asked, and says whether to go on."""


class Writer:
    """A model that answers, where a judge is expected: what it wrote is the evidence of its verdict."""

    def __init__(self, chat: StreamingChat, *, prompt_version: str = DEFAULT_PROMPT) -> None:
        self.chat = chat
        self.prompt_version = prompt_version

    @property
    def name(self) -> str:
        """The model and its address: the same name elsewhere may be another model."""
        return f"answer({self.chat.name}@{self.chat.endpoint.base_url})"

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The answer; UNSURE and not ``answered`` where the model wrote nothing."""
        prompt = self._prompt(case, contexts)
        written = self.chat.complete(prompt.text, system=prompt.system, attempt=attempt)
        text = plain_text(without_thoughts(written.text)).strip()
        trouble = "" if text else written.trouble or "it wrote nothing"
        current_limiter().circuit_breaker.record(self.name, case.id, trouble)
        return Verdict(
            label="YES" if text else "UNSURE",
            evidence=text,
            reason=written.trouble[:500],
            judge=self.name,
            prompt_version=self.prompt_version,
            usage=written.usage,
            answered=bool(text),
        )

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """Beside question and passages, the limit of tokens; the known answers are compared later."""
        return [self.chat.max_output_tokens]

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """What one answer will probably cost."""
        prompt = self._prompt(case, contexts)
        return self.chat.expected(prompt.text, prompt.system)

    def _prompt(self, case: Case, contexts: Sequence[Document]) -> Prompt:
        passages = [
            Passage(number=number, name=one.fqn, text=one.text)
            for number, one in enumerate(contexts, start=1)
        ]
        return write_prompt(case.question, passages, self.prompt_version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What has to be asked: each different task once, and which of them is whose."""

    cases: Mapping[str, Case]
    tasks: tuple[Task, ...]
    task_of: Mapping[tuple[str, str], int]


def plan_of(dataset: Dataset, runs: Runs, query_ids: Sequence[str], k: int) -> Plan:
    """The tasks for the first k picks of every system, for the queries whose answer is known."""
    known = cases_of(dataset)
    cases = {query_id: known[query_id] for query_id in query_ids if query_id in known}
    if not cases:
        raise ConfigError(
            f"data set {dataset.name!r} knows no answers: they can be measured on RGB, "
            "and on mined or BEIR sets whose queries have answers"
        )
    documents = {chunk.id: Document(heading_of(chunk.metadata), chunk.text) for chunk in dataset.chunks}
    places: dict[tuple[str, tuple[str, ...]], int] = {}
    tasks: list[Task] = []
    task_of: dict[tuple[str, str], int] = {}
    for system, seeded in runs.items():
        for query_id, case in cases.items():
            picks = tuple(seeded[0].get(query_id, ()))[:k]
            place = places.setdefault((query_id, picks), len(tasks))
            if place == len(tasks):
                tasks.append(Task(case, tuple(documents[pick] for pick in picks if pick in documents)))
            task_of[system, query_id] = place
    return Plan(cases=cases, tasks=tuple(tasks), task_of=task_of)


def measure_answers(
    outcome: Outcome,
    dataset: Dataset,
    config: EvaluationConfig,
    chat: StreamingChat,
    *,
    journal: Path,
    limits: CallLimits | None = None,
    confirm: Confirm = lambda _: True,
    listener: Listener = silent,
) -> Outcome:
    """The outcome with ``answer@k`` beside its measures; unchanged where ``confirm`` says no."""
    k = config.headline_k
    first = next(iter(outcome.scores.values()))
    plan = plan_of(dataset, outcome.runs, first.query_ids, k)

    def hear(done: int, total: int | None) -> None:
        listener(f"Asking {chat.name}", done, len(plan.tasks))

    with Journal.open(journal, resume=True) as kept:
        kept.withdraw_unanswered()
        writer = JournaledJudge(Writer(chat), kept)
        if not confirm(estimate(writer, plan.tasks)):
            return outcome
        try:
            verdicts = judge_many(writer, plan.tasks, CallLimiter(limits), hear)
            written = [verdict.evidence for _, verdict in verdicts]
        except (BudgetError, EndpointError) as error:
            raise type(error)(_in_our_words(str(error))) from error
    scores = _scores(plan, outcome.runs, written, k)
    about = {
        "model": chat.name,
        "prompt": DEFAULT_PROMPT,
        "k": k,
        "queries": len(plan.cases),
        "unanswered": sum(not text for text in written),
    }
    return add_measure(outcome, config, Measure("answer", k), scores, about=about)


def _in_our_words(message: str) -> str:
    """What judges call verdicts are answers here, and the same command goes on."""
    words = re.sub(r"\bverdict(s?)\b", r"answer\1", message)
    return words.replace("resume to ask for the missing ones", "the same command asks for the missing ones")


def _scores(plan: Plan, runs: Runs, written: Sequence[str], k: int) -> dict[str, Scores]:
    query_ids = list(plan.cases)
    right = [
        float(bool(text) and holds_answer(text, task.case))
        for text, task in zip(written, plan.tasks, strict=True)
    ]
    return {
        system: Scores(
            query_ids=query_ids,
            values={f"answer@{k}": np.array([right[plan.task_of[system, one]] for one in query_ids])},
        )
        for system in runs
    }
