"""Language models: one client for each API, with retries, streaming, budgets and rate limits.

``ask``, judges and agents use the same clients. :class:`OpenAIChat` and :class:`GeminiChat` answer at once
(:meth:`~Chat.complete`) or while they write (:meth:`~StreamingChat.stream`); :func:`chat_model` makes one by
name. Calls inside ``with metered(Meter(limits))`` keep to :class:`CallLimits`. To add an API, subclass
:class:`StreamingChat` in a new file and name it in ``by_name.py``.
"""

from dartboard.llm.by_name import chat_model
from dartboard.llm.chat import Chat, ChatAnswer, ChatOptions, CompletionModel, Piece
from dartboard.llm.errors import AnswerError, NoAnswersError, RefusedError
from dartboard.llm.gemini import GeminiChat
from dartboard.llm.limits import CallLimits
from dartboard.llm.meter import Meter, current_meter, metered
from dartboard.llm.openai import OpenAIChat
from dartboard.llm.streaming import AnswerModel, StreamingChat
from dartboard.llm.usage import Prices, Usage, estimated_tokens, spending, total_usage

__all__ = [
    "AnswerError",
    "AnswerModel",
    "CallLimits",
    "Chat",
    "ChatAnswer",
    "ChatOptions",
    "CompletionModel",
    "GeminiChat",
    "Meter",
    "NoAnswersError",
    "OpenAIChat",
    "Piece",
    "Prices",
    "RefusedError",
    "StreamingChat",
    "Usage",
    "chat_model",
    "current_meter",
    "estimated_tokens",
    "metered",
    "spending",
    "total_usage",
]
