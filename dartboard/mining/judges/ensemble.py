"""Several judges, one verdict: what more than half of them say, otherwise UNSURE."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import reduce
from operator import add
from typing import Any

from dartboard.errors import ConfigError
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.documents import Document
from dartboard.mining.judges.base import expected_usage, is_known, looked_at, version_of
from dartboard.mining.verdicts import Judge, Label, Verdict


class EnsembleJudge:
    """A majority of its members; who disagreed, and why, is in the reason, the labels are in ``votes``."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        if len(judges) < 2:
            raise ConfigError(f"an ensemble needs at least 2 judges, got {len(judges)}")
        self.judges = tuple(judges)

    @property
    def name(self) -> str:
        """``ensemble(…)`` with the members' names."""
        return f"ensemble({', '.join(judge.name for judge in self.judges)})"

    @property
    def prompt_version(self) -> str:
        """The members' prompt versions, each once."""
        return "+".join(dict.fromkeys(filter(None, map(version_of, self.judges))))

    def judge(self, case: Case, contexts: Sequence[Document], *, attempt: int = 0) -> Verdict:
        """Ask all members and count."""
        verdicts = [judge.judge(case, contexts, attempt=attempt) for judge in self.judges]
        votes: tuple[Label, ...] = tuple(verdict.label for verdict in verdicts)
        label = majority(votes)
        side = next((verdict for verdict in verdicts if verdict.label == label), Verdict(label=label))
        return Verdict(
            label=label,
            evidence=side.evidence if label == "YES" else "",
            missing=next((verdict.missing for verdict in verdicts if verdict.missing), "")
            if label != "YES"
            else "",
            reason=_reason(label, verdicts, [judge.name for judge in self.judges]),
            judge=self.name,
            prompt_version=self.prompt_version,
            votes=votes,
            usage=reduce(add, (verdict.usage for verdict in verdicts)),
            answered=any(verdict.answered for verdict in verdicts),
        )

    def with_members(self, changed: Callable[[Judge], Judge]) -> "EnsembleJudge":
        """The same ensemble with each member wrapped."""
        return EnsembleJudge([changed(judge) for judge in self.judges])

    def looks_at(self, case: Case, contexts: Sequence[Document]) -> Any:
        """What its members look at."""
        return [looked_at(judge, case, contexts) for judge in self.judges]

    def expected(self, case: Case, contexts: Sequence[Document]) -> Usage:
        """What asking all members will probably cost."""
        return reduce(add, (expected_usage(judge, case, contexts) for judge in self.judges))

    def known(self, case: Case, contexts: Sequence[Document], attempt: int) -> bool:
        """Whether the verdicts of all members are at hand."""
        return all(is_known(judge, case, contexts, attempt) for judge in self.judges)


def majority(votes: Sequence[Label]) -> Label:
    """The label of more than half of the votes, otherwise UNSURE."""
    label, count = Counter(votes).most_common(1)[0]
    return label if 2 * count > len(votes) else "UNSURE"


def _reason(label: Label, verdicts: Sequence[Verdict], names: Sequence[str]) -> str:
    agreed = sum(verdict.label == label for verdict in verdicts)
    dissent = [
        f"{name} says {verdict.label}: {verdict.reason}"
        for name, verdict in zip(names, verdicts, strict=True)
        if verdict.label != label
    ]
    return "; ".join([f"{agreed} of {len(verdicts)} judges say {label}", *dissent])
