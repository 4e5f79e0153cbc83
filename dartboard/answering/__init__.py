"""Answers with numbered citations, written by a language model over the passages that were picked.

``answer`` searches, asks and streams; ``prompts`` is what is asked, ``citations`` what an answer cites, and
``registry`` makes models by name. ``accuracy`` measures how often the known answer is given.
"""

from dartboard.answering.answer import Answer, AnswerStream, Tokens, ask
from dartboard.answering.citations import Citation, Passage, find_citations, numbered
from dartboard.answering.decomposition import SubQuestions, decomposed, sub_questions
from dartboard.answering.prompts import NO_ANSWER, write_prompt
from dartboard.answering.registry import answer_model
from dartboard.llm.chat import AnswerModel, Piece
from dartboard.llm.errors import AnswerError

__all__ = [
    "NO_ANSWER",
    "Answer",
    "AnswerError",
    "AnswerModel",
    "AnswerStream",
    "Citation",
    "Passage",
    "Piece",
    "SubQuestions",
    "Tokens",
    "answer_model",
    "ask",
    "decomposed",
    "find_citations",
    "numbered",
    "sub_questions",
    "write_prompt",
]
