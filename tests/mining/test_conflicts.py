"""Where a label of one vote or a case's targets contradict a kernel, the votes decide."""

from dataclasses import replace

import pytest

from dartboard.llm.call_limits import CallLimiter
from dartboard.mining.dataset import Kernel, make_pair
from dartboard.mining.judge_runner import JudgeSession
from dartboard.mining.judges import AnswerJudge
from dartboard.mining.judges.base import Verdict
from dartboard.mining.kernels.conflicts import insufficient_targets, resolve_conflicts
from dartboard.mining.pipeline import mine
from tests.mining.doors import cases, house, raw

BOTH = ("door-5.md", "door-6.md")


class Voting:
    """Says of door 5 alone what ``votes`` say, one after the other; else as the answers do."""

    name, prompt_version = "voting", "1"

    def __init__(self, votes):
        self.votes = votes

    def judge(self, case, contexts, *, attempt=0):
        if case.id == "both" and [one.fqn for one in contexts] == ["door-5.md"]:
            label = self.votes[min(attempt, len(self.votes) - 1)]
            return Verdict(label=label, evidence=contexts[0].text if label == "YES" else "", judge=self.name)
        return AnswerJudge().judge(case, contexts)


def settled(tmp_path, votes, alternatives=()):
    given = raw(tmp_path, [cases()[-1]])
    judge = Voting(votes)
    session = JudgeSession(judge=judge, limiter=CallLimiter(), listen=lambda *_: None)
    kernel = Kernel(contexts=BOTH, status="sufficient", alternatives=alternatives, calls=4)
    pool = given.pools[0]
    labels = {("both", one.fqn): judge.judge(pool.case, [one]) for one in pool.documents}
    labels, found = resolve_conflicts(
        session, given.pools, house(), labels, [{"expansion": kernel}], votes=None
    )
    return make_pair(pool, labels, found[0], house(), marked=False)


def test_a_member_that_answers_alone_by_vote_is_the_kernel(tmp_path):
    pair = settled(tmp_path, ["YES"], alternatives=(("door-4.md", "door-5.md"),))
    assert (pair.kernel.contexts, pair.kernel.status) == (("door-5.md",), "minimal")
    assert pair.kernel.alternatives == ()
    assert pair.kernel.calls == 4 + 3
    assert pair.kernel.evidence
    (positive,) = pair.positives
    assert (positive.fqn, positive.votes) == ("door-5.md", ("YES", "YES", "YES"))


SPLIT = ["YES", "NO", "YES", "NO", "YES", "NO", "UNSURE"]


@pytest.mark.parametrize(("votes", "label"), [(["YES", "NO"], "NO"), (SPLIT, "UNSURE")])
def test_a_label_that_the_votes_refute_is_changed(tmp_path, votes, label):
    pair = settled(tmp_path, votes)
    assert (pair.kernel.contexts, pair.kernel.alternatives) == (BOTH, ())
    first = pair.positives[0]
    assert (first.fqn, first.verdict, first.part_of_kernel, first.evidence) == ("door-5.md", label, True, "")
    assert first.votes[0] == "YES"


def test_a_whole_run_has_no_kernel_that_contradicts_its_alternatives(tmp_path):
    mined = mine(raw(tmp_path), Voting(["YES", "NO"]), corpus=house())
    pair = next(one for one in mined.pairs if one.id == "both")
    assert pair.kernel.contexts == BOTH
    assert ("door-5.md",) not in pair.kernel.alternatives


def believed(*targets):
    """The case of two doors, with other targets."""
    return replace(cases()[-1], targets=targets)


@pytest.mark.parametrize("targets", [("door-5.md",), ("door-5.md", "door-1.md"), ("door-2.md",)])
def test_targets_that_are_not_enough_are_no_positive_control(tmp_path, targets):
    """A judge without errors is told of none: one target of two, with a wrong one, or only a wrong one."""
    mined = mine(raw(tmp_path, [*cases()[:-1], believed(*targets)]), AnswerJudge(), corpus=house())
    pair = mined.pairs[-1]
    assert set(pair.kernel.contexts) == set(BOTH)
    controls = mined.controls
    assert controls["insufficient_targets"] == ["both"]
    assert controls["errors"] == []
    for rate in (controls["false_negative"], controls["by_kind"]["positive"]):
        assert (rate["errors"], rate["decided"], rate["cases"]) == (0, 4, 4)
    assert controls["false_positive"]["decided"] == 15 and controls["cases"] == 5


def test_targets_that_are_more_than_enough_are_a_positive_control(tmp_path):
    listed = [*cases()[:-1], believed("door-4.md", *BOTH)]
    controls = mine(raw(tmp_path, listed), AnswerJudge(), corpus=house()).controls
    assert "insufficient_targets" not in controls
    assert controls["false_negative"]["decided"] == 5


def test_a_judge_that_finds_no_kernel_is_not_excused(tmp_path):
    """One that always says NO is wrong on every positive control."""

    class Never:
        name = "never"

        def judge(self, case, contexts, *, attempt=0):
            return Verdict(label="NO", judge=self.name)

    mined = mine(raw(tmp_path), Never(), corpus=house())
    assert "insufficient_targets" not in mined.controls
    assert mined.controls["false_negative"]["errors"] == 5 and mined.positives == 0


@pytest.mark.parametrize(
    ("votes", "insufficient"), [(["NO"], {"both"}), (["NO", "YES"], set()), (SPLIT, set())]
)
def test_targets_are_voted_on_where_the_kernel_does_not_decide(tmp_path, votes, insufficient):
    given = raw(tmp_path, [believed("door-5.md")])
    session = JudgeSession(judge=Voting(votes), limiter=CallLimiter(), listen=lambda *_: None)
    kernel = Kernel(contexts=BOTH, status="sufficient")
    found = [{"expansion": kernel}]
    assert insufficient_targets(session, given.pools, found, votes=None) == insufficient
    found = [{"expansion": replace(kernel, alternatives=(("door-5.md",),))}]
    assert insufficient_targets(session, given.pools, found, votes=None) == set()
