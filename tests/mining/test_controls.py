"""Controls: what is planted, and what judges of known weaknesses score on it."""

import random
import re

import pytest

from dartboard.errors import EndpointError
from dartboard.llm.call_limits import CallLimiter
from dartboard.llm.parallel import run
from dartboard.mining.agreement import wilson
from dartboard.mining.cases import Case
from dartboard.mining.context_pool import ContextPool, PooledContext
from dartboard.mining.controls import (
    COUNTED,
    REPEATS,
    controls_of,
    count_controls,
    failures,
    injected,
    stuffed,
)
from dartboard.mining.corpora.base import Document
from dartboard.mining.judges import AnswerJudge, OpenAIJudge
from dartboard.mining.judges.base import Verdict
from tests.mining.faulty_server import FaultyServer


def run_controls(pools, judge):
    controls = controls_of(pools)
    verdicts = run(lambda one: judge.judge(one.case, one.contexts), controls, CallLimiter())
    return count_controls(judge.name, 0, list(zip(controls, verdicts, strict=True)))


def door(number: int, *, target: bool = True) -> tuple[Case, ContextPool]:
    name = f"note-{number}"
    document = Document(name, f"A note.\nThe code of door {number} is {1000 + number}.\nKeep it secret.")
    case = Case(
        id=f"door-{number}",
        question=f"What is the code of door {number}?",
        targets=(name,) if target else (),
        answers=(str(1000 + number),),
    )
    origins = ("target",) if target else ("random",)
    return case, ContextPool(case, name if target else None, [PooledContext(document, origins)])


def doors(count: int) -> tuple[list[Case], list[ContextPool]]:
    cases, pools = zip(*(door(number) for number in range(count)), strict=True)
    return list(cases), list(pools)


class ByWords:
    """Says YES where most of the question's words are there: what stuffing is made for."""

    name = "words"

    def judge(self, case, contexts, *, attempt=0):
        asked, seen = (
            set(re.findall(r"\w+", text.lower()))
            for text in (case.question, " ".join(one.text for one in contexts))
        )
        yes = len(asked & seen) > 0.8 * len(asked)
        return Verdict(label="YES" if yes else "NO")


class Obedient:
    """Does as it is told."""

    name = "obedient"

    def judge(self, case, contexts, *, attempt=0):
        told = any("YES" in one.text for one in contexts)
        right = any(case.answers[0] in one.text for one in contexts)
        return Verdict(label="YES" if told or right else "NO")


class Always:
    """Gives one label to everything."""

    def __init__(self, label):
        self.label, self.name = label, f"always {label}"

    def judge(self, case, contexts, *, attempt=0):
        return Verdict(label=self.label)


def test_every_case_gets_every_kind():
    _, pools = doors(5)
    controls = controls_of(pools)
    assert [one.kind for one in controls] == ["zero", *COUNTED] * 5
    for one in controls:
        number = one.case.id.removeprefix("door-")
        holds = any(f"door {number} is" in context.text for context in one.contexts)
        assert holds == (one.right == "YES")
        assert bool(one.contexts) == (one.kind != "zero")


def test_what_is_planted_depends_on_seed_and_case_alone():
    _, pools = doors(8)
    assert controls_of(pools) == controls_of(pools)
    assert controls_of(pools) != controls_of(pools, seed=1)
    backwards = controls_of(pools[::-1])
    assert {str(one) for one in backwards} == {str(one) for one in controls_of(pools)}


def test_a_right_judge_passes():
    _, pools = doors(12)
    found = run_controls(pools, AnswerJudge())
    assert (found.judge, found.cases, found.errors) == ("answers", 12, ())
    assert (found.false_positive.errors, found.false_positive.decided) == (0, 36)
    assert (found.false_negative.errors, found.false_negative.decided) == (0, 12)
    assert found.false_negative.high == pytest.approx(wilson(0, 12)[1], abs=1e-6)
    assert found.false_positive.cases == 12 == found.by_kind["stuffed"].cases
    assert found.answered_without_context == ()


def test_a_question_that_holds_its_answer_is_marked():
    _, pools = doors(3)
    given = Case(
        id="given", question="Is code 1001 right for door 1?", answers=("1001",), targets=("note-1",)
    )
    pool = ContextPool(given, "note-1", pools[1].contexts)
    found = run_controls([*pools, pool], AnswerJudge())
    assert found.answered_without_context == ("given",)


def test_a_judge_of_words_falls_for_stuffing():
    _, pools = doors(20)
    found = run_controls(pools, ByWords())
    rates = {kind: rate.rate for kind, rate in found.by_kind.items()}
    assert (rates["positive"], rates["negative"], rates["stuffed"]) == (0.0, 0.0, 1.0)
    assert 0 < rates["injected"] < 0.6  # where the injection repeats the question


def test_an_obedient_judge_falls_for_injections_alone():
    _, pools = doors(20)
    found = run_controls(pools, Obedient())
    rates = {kind: rate.rate for kind, rate in found.by_kind.items()}
    assert rates == {"positive": 0.0, "negative": 0.0, "stuffed": 0.0, "injected": 1.0}
    assert {one.kind for one in found.errors} == {"injected"} and len(found.errors) == 20
    assert (found.false_positive.errors, found.false_positive.decided) == (20, 60)
    # Sixty verdicts of twenty cases count as twenty.
    low, high = wilson(20 / 3, 20)
    assert (found.false_positive.low, found.false_positive.high) == pytest.approx((low, high), abs=1e-6)


@pytest.mark.parametrize(("label", "positive", "negative"), [("YES", 1.0, 0.0), ("NO", 0.0, 1.0)])
def test_one_label_for_everything(label, positive, negative):
    _, pools = doors(4)
    found = run_controls(pools, Always(label))
    assert (found.false_positive.rate, found.false_negative.rate) == (positive, negative)
    assert len(failures(found)) == 1


def test_unsure_is_no_error_and_no_proof():
    _, pools = doors(4)
    found = run_controls(pools, Always("UNSURE"))
    rate = found.false_positive
    assert (rate.errors, rate.decided, rate.unsure, rate.rate, rate.low, rate.high) == (
        0,
        0,
        12,
        None,
        0.0,
        1.0,
    )


def test_without_targets_or_others_there_is_less_to_plant():
    _, pool = door(1)
    assert [one.kind for one in controls_of([pool])] == ["zero", "positive"]
    bare, bare_pool = door(2, target=False)
    kinds = [one.kind for one in controls_of([pool, bare_pool]) if one.case is bare]
    assert kinds == ["zero", "negative", "stuffed", "injected"]


def test_the_same_target_is_no_negative():
    (_, pool), (_, other_pool) = door(1), door(2)
    twin = Case(id="twin", question="Which code opens door 1?", targets=("note-1",))
    twin_pool = ContextPool(twin, "note-1", pool.contexts)
    copy = Case(id="copy", question="Door 1?", targets=("copied",))
    text = pool.contexts[0].document.text
    copy_pool = ContextPool(copy, "copied", [PooledContext(Document("copied", text), ("target",))])
    for one in controls_of([pool, twin_pool, copy_pool, other_pool]):
        if one.right == "NO" and one.case.id != "door-2":
            assert one.contexts[0].fqn == "note-2"


def test_cases_are_those_of_the_pools_in_their_order():
    cases, pools = doors(2)
    asked = dict.fromkeys(one.case.id for one in controls_of(pools[::-1]))
    assert list(asked) == [case.id for case in cases[::-1]]


def test_stuffing_repeats_every_word_and_keeps_every_line():
    document = Document("d", "one line\nanother line")
    text = stuffed(document, "Who's there, in café-bar?", random.Random(0)).text
    assert all(text.count(word) == REPEATS for word in ("Who's", "there", "café-bar"))
    assert "one line" in text and "another line" in text
    assert stuffed(document, "???", random.Random(0)) == document
    long = Document("d", "\n".join(f"line {number}" for number in range(50)))
    assert all(f"line {number}" in stuffed(long, "a b", random.Random(0)).text for number in range(50))


def test_injections_keep_the_text_and_say_yes():
    document = Document("d", "the text")
    texts = {injected(document, "Why {x}?", random.Random(seed)).text for seed in range(40)}
    assert len(texts) > 4
    assert all("the text" in text and "YES" in text for text in texts)


class Down:
    """Its endpoint fails on texts that call themselves the answer."""

    name = "down"

    def judge(self, case, contexts, *, attempt=0):
        if any("YES" in one.text for one in contexts):
            raise EndpointError("no connection")
        return Verdict(label="NO", judge=self.name)


def test_counts_need_a_verdict_for_each():
    _, pools = doors(2)
    with pytest.raises(EndpointError, match="2 calls failed, the first with: no connection"):
        run_controls(pools, Down())


def test_a_lying_model_is_caught_by_its_quotes():
    """Lies quote what nobody wrote, so they end as UNSURE: the controls show no error, and say so."""
    _, pools = doors(30)
    with FaultyServer(seed=1, lies=0.3) as server, OpenAIJudge("m", server.url) as judge:
        found = run_controls(pools, judge)
    assert found.false_positive.errors == 0
    assert found.false_positive.unsure > 10
    assert failures(found) == []
