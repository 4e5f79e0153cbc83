"""Judges: can a question be answered from these contexts alone?

To add a judge, write a class with ``name`` and ``judge`` in a new file here, after the example of
``base.py``, and give it a name in ``by_name.py``.

:class:`AnswerJudge` and :class:`CheckJudge` ask nobody; :class:`GeminiJudge`, :class:`OpenAIJudge` and any
other :class:`ChatJudge` ask a model and believe a YES only with a quote that stands in a context;
:class:`EnsembleJudge` counts votes.
"""

from dartboard.mining.judges.answers import AnswerJudge
from dartboard.mining.judges.by_name import judge_by_name
from dartboard.mining.judges.chat_judge import ChatJudge, GeminiJudge, OpenAIJudge
from dartboard.mining.judges.checks import CheckJudge
from dartboard.mining.judges.ensemble import EnsembleJudge

__all__ = [
    "AnswerJudge",
    "ChatJudge",
    "CheckJudge",
    "EnsembleJudge",
    "GeminiJudge",
    "OpenAIJudge",
    "judge_by_name",
]
