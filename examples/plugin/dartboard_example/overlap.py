"""A judge: YES where the contexts together hold enough of the question's words.

It asks nobody and understands nothing. What it says is only worth something beside a better judge, for
instance as a member of an ensemble.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dartboard.errors import ConfigError
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Verdict

_WORD = re.compile(r"\w{4,}")


@dataclass(frozen=True, slots=True)
class OverlapJudge:
    """YES from ``share`` of the question's words of four letters and more."""

    share: float = 0.6

    @property
    def name(self) -> str:
        """With the share, since verdicts depend on it."""
        return f"overlap:{self.share:g}"

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """The same verdict at every attempt; the evidence is the sentence that holds most of the words."""
        asked = set(_WORD.findall(case.question.lower()))
        if not asked or not contexts:
            return Verdict(label="NO", reason="there is nothing to compare", judge=self.name)
        held = asked & {word for context in contexts for word in _WORD.findall(context.text.lower())}
        reason = f"{len(held)} of {len(asked)} words of the question"
        if len(held) < self.share * len(asked):
            missing = ", ".join(sorted(asked - held))
            return Verdict(label="NO", reason=reason, missing=missing, judge=self.name)
        sentences = [line for context in contexts for line in re.split(r"(?<=[.!?])\s+|\n+", context.text)]
        evidence = max(sentences, key=lambda line: len(asked & set(_WORD.findall(line.lower()))))
        return Verdict(label="YES", reason=reason, evidence=evidence.strip(), judge=self.name)


def overlap_judge(argument: str, **options: Any) -> OverlapJudge:
    """``overlap``, or ``overlap:0.8``: what the entry point names. The options are for chat models."""
    try:
        share = float(argument or 0.6)
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise ConfigError(f"overlap:SHARE takes a number above 0 and up to 1, got {argument!r}")
    return OverlapJudge(share)
