"""What an agent's model said, kept in the journal: a run that was killed asks nobody twice.

A turn is written down like a verdict without a label of its own (UNSURE), with the words as its reason.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from dartboard.llm.chat import ChatAnswer, CompletionModel
from dartboard.llm.usage import Usage, spending
from dartboard.mining.journal import Journal
from dartboard.mining.verdicts import Verdict


class JournaledChat:
    """A chat model whose answers are written down; one that is known is not asked for."""

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
        with spending() as spent:
            try:
                answer = self._chat.complete(text, system=system, schema=schema, attempt=attempt)
            except BaseException:
                if spent.usage != Usage():
                    self._journal.add(key, None, spent.usage)
                raise
        kept = Verdict(
            label="UNSURE",
            reason=answer.text,
            missing=answer.trouble,
            judge=f"turn:{self.model}",
            answered=bool(answer.text),
        )
        self._journal.add(key, kept, answer.usage)
        return answer
