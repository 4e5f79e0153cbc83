"""Judges and chat models whose answers are in the journal before they are used, and not asked for twice."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any

from dartboard.llm.chat import ChatAnswer, CompletionModel
from dartboard.llm.usage import Usage, spending
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Judge, Verdict, expected_usage, looked_at, version_of
from dartboard.mining.judges.composite_judges import EnsembleJudge, PerCaseJudge
from dartboard.mining.verdict_journal import Journal


class JournaledJudge:
    """A judge whose verdicts are written down, and not asked for twice."""

    def __init__(self, judge: Judge, journal: Journal) -> None:
        self._judge = judge
        self._journal = journal
        self._lock = Lock()
        self._under_way: dict[str, Event] = {}

    @property
    def name(self) -> str:
        """The judge's own."""
        return self._judge.name

    @property
    def prompt_version(self) -> str:
        """The judge's own."""
        return version_of(self._judge)

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """From the journal, or asked and written down."""
        key = key_of(self._judge, case, contexts, attempt)
        with self._turn(key):
            verdict = self._journal.get(key)
            if verdict is None:
                with _failure_paid(self._journal, key):
                    verdict = self._judge.judge(case, contexts, attempt=attempt)
                self._journal.add(key, verdict, verdict.usage)
            return verdict

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """As the judge."""
        return looked_at(self._judge, case, contexts)

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """As the judge; nothing for what is in the journal."""
        return Usage() if self.known(case, contexts, 0) else expected_usage(self._judge, case, contexts)

    def known(self, case: Case, contexts: Sequence[Document], attempt: int) -> bool:
        """Whether the journal has the verdict."""
        return self._journal.get(key_of(self._judge, case, contexts, attempt)) is not None

    @contextmanager
    def _turn(self, key: str) -> Iterator[None]:
        """One call a key at a time: the second waits for the first one's verdict."""
        while True:
            with self._lock:
                event = self._under_way.get(key)
                if event is None:
                    mine = self._under_way[key] = Event()
                    break
            event.wait()
        try:
            yield
        finally:
            with self._lock:
                del self._under_way[key]
            mine.set()


class JournaledChat:
    """A chat model whose answers are written down; one that is known is not asked for.

    An answer is kept like a verdict without a label of its own (UNSURE), with the words as its reason.
    """

    def __init__(self, chat: CompletionModel, journal: Journal) -> None:
        self._chat = chat
        self._journal = journal

    @property
    def model(self) -> str:
        """The model's own name."""
        return self._chat.model

    def complete(
        self, text: str, *, system: str = "", schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> ChatAnswer:
        """From the journal, or asked and written down."""
        parts = ["turn", self.model, system, text, dict(schema or {}), attempt]
        key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
        known = self._journal.get(key)
        if known is not None:
            return ChatAnswer(text=known.reason, usage=known.usage, trouble=known.missing)
        with _failure_paid(self._journal, key):
            answer = self._chat.complete(text, system=system, schema=schema, attempt=attempt)
        kept = Verdict(
            label="UNSURE",
            reason=answer.text,
            missing=answer.trouble,
            judge=f"turn:{self.model}",
            answered=bool(answer.text),
        )
        self._journal.add(key, kept, answer.usage)
        return answer


def journaled(judge: Judge, journal: Journal | None) -> Judge:
    """A judge that asks for nothing twice; the same judge where there is no journal.

    The members of a judge that is made of others are journaled one by one: what one of them was paid for is
    kept when another fails.
    """
    if journal is None:
        return judge
    if isinstance(judge, PerCaseJudge | EnsembleJudge):
        return judge.with_members(lambda member: journaled(member, journal))
    return JournaledJudge(judge, journal)


@contextmanager
def _failure_paid(journal: Journal, key: str) -> Iterator[None]:
    """Write down what a call has cost that then failed."""
    with spending() as spent:
        try:
            yield
        except BaseException:
            if spent.usage != Usage():
                journal.add(key, None, spent.usage)
            raise


def key_of(judge: Judge, case: Case, contexts: Sequence[Document], attempt: int) -> str:
    """sha256 of everything that a verdict depends on."""
    parts = [
        judge.name,
        version_of(judge),
        case.question,
        [[context.fqn, context.text] for context in contexts],
        attempt,
        looked_at(judge, case, contexts),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
