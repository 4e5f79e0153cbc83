"""Language models: one client for each API, with retries, streaming, budgets and rate limits.

``ask``, judges and agents use the same clients. :class:`OpenAIChat` and :class:`GeminiChat` answer at once
(:meth:`~Chat.complete`) or while they write (:meth:`~Chat.stream`); :func:`chat_model` makes one by name.
Calls inside ``with limited_by(CallLimiter(limits))`` keep to their :class:`CallLimits`. To add an API,
subclass :class:`Chat` in a new file and name it in ``registry.py``.

===========================  =====================================================================
``registry``                 models by name
``openai``, ``gemini``       requests and answers of each API
``chat``                     retries, and answers at once or while they are written
``parallel``, ``journal``    many calls at once, and every answer on disk before it is used
``call_limits``, ``usage``   budgets, rate limits, tokens, and when to give up
``prompts``                  texts of strangers fenced as data
``reply_parser``             thoughts, JSON and code in replies
===========================  =====================================================================
"""

from dartboard.llm.call_limits import CallLimiter, CallLimits, current_limiter, limited_by
from dartboard.llm.chat import AnswerModel, Chat, ChatAnswer, ChatOptions, CompletionModel, Piece
from dartboard.llm.errors import AnswerError, NoAnswersError, RefusedError
from dartboard.llm.gemini import GeminiChat
from dartboard.llm.journal import Journal, JournaledChat
from dartboard.llm.openai import OpenAIChat
from dartboard.llm.registry import chat_model
from dartboard.llm.usage import Usage, estimated_tokens, spending

__all__ = [
    "AnswerError",
    "AnswerModel",
    "CallLimiter",
    "CallLimits",
    "Chat",
    "ChatAnswer",
    "ChatOptions",
    "CompletionModel",
    "GeminiChat",
    "Journal",
    "JournaledChat",
    "NoAnswersError",
    "OpenAIChat",
    "Piece",
    "RefusedError",
    "Usage",
    "chat_model",
    "current_limiter",
    "estimated_tokens",
    "limited_by",
    "spending",
]
