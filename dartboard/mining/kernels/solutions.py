"""Did the agent solve the case? What a wrong solution rests on is no kernel.

A case with an executable check runs the solution with it, where running code was asked for: it was written by
a model that has read texts of strangers. A case of words compares the answer with the known one, as the
offline judge does. Where neither can be done the solution is believed, and that is said.
"""

from dartboard.llm.replies import code_blocks
from dartboard.mining.cases import Case
from dartboard.mining.documents import Document
from dartboard.mining.judges.answers import AnswerJudge
from dartboard.mining.judges.running import run_check

UNTESTED = "its solution was not tested"


def code_of(answer: str) -> str:
    """The code of an answer: what stands in its fences, else all of it."""
    return "\n".join(code_blocks(answer)) or answer


def tested(case: Case, answer: str, *, run: bool) -> tuple[bool | None, str]:
    """Whether a solution is right, and why not; None where nobody can tell."""
    if case.check is not None and run:
        outcome = run_check(case.check, code_of(answer))
        return outcome.passed, "" if outcome.passed else f"its solution fails the check: {outcome.told}"
    if case.check is not None or case.solution is not None:
        # Answer strings of such a case stand in documents, not in the code that solves it.
        return None, UNTESTED
    verdict = AnswerJudge().judge(case, [Document("answer", answer)])
    if verdict.label == "UNSURE":
        return None, UNTESTED
    return verdict.label == "YES", "" if verdict.label == "YES" else f"its answer is wrong: {verdict.reason}"
