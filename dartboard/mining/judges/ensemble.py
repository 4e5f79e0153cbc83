"""Several judges as one: a majority of their votes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from dartboard.datasets.mined import Label
from dartboard.errors import ConfigError
from dartboard.llm.journal import Journal, JournaledChat
from dartboard.llm.usage import Usage
from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.base import Judge, Verdict, expected_usage, version_of
from dartboard.mining.judges.chat_judge import ChatJudge
from dartboard.mining.judges.check_judge import CheckJudge


class EnsembleJudge:
    """A majority of its members; who disagreed, and why, is in the reason, the labels are in ``votes``.

    Args:
        judges: at least two.

    Raises:
        ConfigError: there are fewer.
    """

    def __init__(self, judges: Sequence[Judge]) -> None:
        if len(judges) < 2:
            raise ConfigError(f"an ensemble needs at least 2 judges, got {len(judges)}", field="judges")
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
        """Ask all members and count: the label of more than half of the votes, otherwise UNSURE."""
        verdicts = [judge.judge(case, contexts, attempt=attempt) for judge in self.judges]
        votes: tuple[Label, ...] = tuple(verdict.label for verdict in verdicts)
        most, count = Counter(votes).most_common(1)[0]
        label: Label = most if 2 * count > len(votes) else "UNSURE"
        side = next((verdict for verdict in verdicts if verdict.label == label), Verdict(label=label))
        missing = next((verdict.missing for verdict in verdicts if verdict.missing), "")
        dissent = [
            f"{judge.name} says {verdict.label}: {verdict.reason}"
            for judge, verdict in zip(self.judges, verdicts, strict=True)
            if verdict.label != label
        ]
        return Verdict(
            label=label,
            evidence=side.evidence if label == "YES" else "",
            missing="" if label == "YES" else missing,
            reason="; ".join([f"{votes.count(label)} of {len(votes)} judges say {label}", *dissent]),
            judge=self.name,
            prompt_version=self.prompt_version,
            votes=votes,
            answered=any(verdict.answered for verdict in verdicts),
        )

    def expected(self, case: Case, contexts: Sequence[Document], attempt: int = 0) -> Usage:
        """What asking all members will probably take."""
        return reduce(add, (expected_usage(judge, case, contexts, attempt) for judge in self.judges))


def journaled(judge: Judge, journal: Journal | None) -> Judge:
    """The judge with a journal behind every chat model in it; the same judge where there is none."""
    if journal is None:
        return judge
    if isinstance(judge, ChatJudge):
        return ChatJudge(JournaledChat(judge.chat, journal), prompt_version=judge.prompt_version)
    if isinstance(judge, EnsembleJudge):
        return EnsembleJudge([journaled(one, journal) for one in judge.judges])
    if isinstance(judge, CheckJudge) and judge.otherwise is not None:
        return replace(judge, otherwise=journaled(judge.otherwise, journal))
    return judge


def members_in(judge: Judge | None) -> set[str]:
    """The names of a judge and of all that it is made of."""
    return set() if judge is None else {judge.name}.union(*map(members_in, parts_of(judge)))


def parts_of(judge: Judge) -> tuple[Judge, ...]:
    """What a judge is made of."""
    if isinstance(judge, CheckJudge):
        return () if judge.otherwise is None else (judge.otherwise,)
    return judge.judges if isinstance(judge, EnsembleJudge) else ()


def close_judge(judge: Judge) -> None:
    """Close the connections of a judge and of all that it is made of."""
    for part in parts_of(judge):
        close_judge(part)
    close = getattr(judge, "close", None)
    if close is not None:
        close()
