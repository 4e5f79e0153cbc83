"""Language models: one client for each API, with retries, streaming, budgets and rate limits.

``ask``, judges and agents use the same clients. :class:`OpenAIChat` and :class:`GeminiChat` answer at once
(:meth:`~Chat.complete`) or while they write (:meth:`~StreamingChat.stream`); :func:`chat_model` makes one by
name. Calls inside ``with limited_by(CallLimiter(limits))`` keep to their :class:`CallLimits`. To add an API,
subclass :class:`StreamingChat` in a new file and name it in ``registry.py``.

==================================  ====================================================================
``registry``                        models by name
``openai``, ``gemini``              requests and answers of each API
``chat``, ``streaming_chat``        retries, and answers at once or while they are written
``sse_client``                      a streamed response, and the events in it
``prompts``, ``reply_parser``       texts of strangers fenced as data; thoughts, JSON and code in replies
``usage``                           counts tokens and money
``call_limits``                     budgets and rate limits
``circuit_breaker``, ``errors``     when to give up, and why
==================================  ====================================================================
"""

from dartboard.llm.call_limits import CallLimiter, CallLimits, current_limiter, limited_by
from dartboard.llm.chat import Chat, ChatAnswer, ChatOptions, CompletionModel, Piece
from dartboard.llm.errors import AnswerError, NoAnswersError, RefusedError
from dartboard.llm.gemini import GeminiChat
from dartboard.llm.openai import OpenAIChat
from dartboard.llm.registry import chat_model
from dartboard.llm.streaming_chat import AnswerModel, StreamingChat
from dartboard.llm.usage import Prices, Usage, estimated_tokens, spending, total_usage

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
    "NoAnswersError",
    "OpenAIChat",
    "Piece",
    "Prices",
    "RefusedError",
    "StreamingChat",
    "Usage",
    "chat_model",
    "current_limiter",
    "estimated_tokens",
    "limited_by",
    "spending",
    "total_usage",
]
