"""The end-to-end measure: given the passages that a system picks, does a model name the known answer?

Each system's first k passages go to the model with the prompt of ``dartboard ask``. Systems that pick the
same passages in the same order share an answer. Everything that is paid for is in a journal before it is
used, so a run that is killed goes on without paying twice; calls run in parallel within limits, as those of
judges do. Of a system with several seeds the first is asked about.

Strings are compared as the offline judge of :mod:`dartboard.mining` compares them: by their words. Of an
answer in several parts (RGB's) each has to be there. The numbers of citations are not looked at, a bare yes
or no counts where the answer begins with it, and an answer that says that there is none is none. (After
Pickett et al., 2024, and RGB's own rule, Chen et al., 2024.)
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dartboard.answering.citations import Passage, without_citations
from dartboard.answering.prompts import DEFAULT_PROMPT, NO_ANSWER, write_prompt
from dartboard.errors import ConfigError
from dartboard.evaluation.experiment import Outcome, add_measure
from dartboard.evaluation.measures import Measure, Scores
from dartboard.evaluation.runner import Listener, Runs, silent
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.llm.call_limits import CallLimiter, CallLimits
from dartboard.llm.chat import Chat
from dartboard.llm.journal import Journal, JournaledChat
from dartboard.llm.parallel import run
from dartboard.llm.prompts import Prompt
from dartboard.llm.reply_parser import without_thoughts
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case, labelled_case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.answer_judge import facets_of
from dartboard.mining.judges.words import first_sentence
from dartboard.plain_text import heading_of, plain_text
from dartboard.types import Dataset

_BARE = {"yes": "yes", "true": "yes", "no": "no", "false": "no"}
_FIRST_WORD = re.compile(r"\W*(\w+)")


def cases_of(dataset: Dataset) -> dict[str, Case]:
    """The questions whose answer is known, by query id."""
    answers = dataset.metadata.get("answers", {})
    parts = dataset.metadata.get("answer_parts", {})
    cases = {
        query_id: labelled_case(
            id=query_id,
            question=text,
            answers=tuple(one for one in answers.get(query_id, ()) if one.strip()),
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
        return first_sentence(spellings, [text]) is not None
    first = _FIRST_WORD.match(text)
    return first is not None and _BARE.get(first[1].lower()) in bare


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Questions to ask; ``known`` answers are in the journal, the others take probably ``usage``."""

    tasks: int
    known: int
    usage: Usage


Confirm = Callable[[Estimate], bool]
"""Hears what is about to be asked, and says whether to go on."""


@dataclass(frozen=True, slots=True)
class Task:
    """A question with the passages that a system picked."""

    case: Case
    documents: tuple[Document, ...]

    @property
    def prompt(self) -> Prompt:
        """What the model is asked."""
        passages = [
            Passage(number=number, name=one.fqn, text=one.text)
            for number, one in enumerate(self.documents, start=1)
        ]
        return write_prompt(self.case.question, passages)


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
    chat: Chat,
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
    step = f"Asking {chat.name}"
    with Journal.open(journal, resume=True) as kept:
        writer, limiter = JournaledChat(chat, kept), CallLimiter(limits)
        if not confirm(_estimate(writer, plan.tasks)):
            return outcome

        def write(task: Task) -> str:
            prompt = task.prompt
            answer = writer.complete(prompt.text, system=prompt.system)
            text = plain_text(without_thoughts(answer.text)).strip()
            limiter.record(chat.name, task.case.id, "" if text else answer.trouble or "it wrote nothing")
            return text

        written = run(write, plan.tasks, limiter, lambda done, total: listener(step, done, total))
    scores = _scores(plan, outcome.runs, written, k)
    about = {
        "model": chat.name,
        "prompt": DEFAULT_PROMPT,
        "k": k,
        "queries": len(plan.cases),
        "unanswered": sum(not text for text in written),
    }
    return add_measure(outcome, config, Measure("answer", k), scores, about=about)


def _estimate(writer: JournaledChat, tasks: Sequence[Task]) -> Estimate:
    usages = [writer.expected(task.prompt.text, task.prompt.system) for task in tasks]
    known = sum(not usage.calls for usage in usages)
    return Estimate(tasks=len(tasks), known=known, usage=sum(usages, Usage()))


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
