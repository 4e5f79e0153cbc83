"""Judges: can a question be answered from these contexts alone?

To add a judge, write a class with ``name`` and ``judge`` in a new file here, after the example of
``base.py``, and give it a name in ``registry.py``.

:class:`AnswerJudge` and :class:`CheckJudge` ask nobody; :class:`GeminiJudge`, :class:`OpenAIJudge` and any
other :class:`ChatJudge` ask a model and believe a YES only with a quote that stands in a context;
:class:`EnsembleJudge` counts votes.
"""

from dartboard.mining.judges.answer_judge import AnswerJudge
from dartboard.mining.judges.chat_judge import ChatJudge, GeminiJudge, OpenAIJudge
from dartboard.mining.judges.check_judge import CheckJudge
from dartboard.mining.judges.ensemble import EnsembleJudge
from dartboard.mining.judges.registry import judge_by_name

__all__ = [
    "AnswerJudge",
    "ChatJudge",
    "CheckJudge",
    "EnsembleJudge",
    "GeminiJudge",
    "OpenAIJudge",
    "judge_by_name",
]
