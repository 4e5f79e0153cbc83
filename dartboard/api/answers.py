"""Who writes answers for the service, how many at a time, and what is said where there is none.

Answers have threads of their own, since they wait for a model most of the time: a search never stands behind
one. Of an error, the log gets a word and a status; what the endpoint says may quote the question.
"""

import logging
import math
from dataclasses import replace

from dartboard.answering import AnswerError, answer_model
from dartboard.answering.answer import Answer
from dartboard.answering.registry import PATIENCE
from dartboard.api.errors import ApiError, Unavailable
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.api.worker_pool import WorkerPool

logger = logging.getLogger(__name__)


class NotConfigured(ApiError):
    """No model was configured to write answers."""

    status, code = 501, "not_configured"
    message = (
        "this service writes no answers: whoever runs it has to set answer_model (DARTBOARD_ANSWER_MODEL); "
        "POST /api/dartboard/retrieve gives the passages"
    )


class Answers:
    """The model of the service, and the threads in which its answers are read."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._metrics = metrics
        self.model = (
            answer_model(
                settings.answer_model,
                max_output_tokens=settings.answer_tokens,
                patience=replace(PATIENCE, timeout=min(PATIENCE.timeout, settings.answer_timeout)),
                timeout=math.inf,  # the deadline of the request holds
            )
            if settings.answer_model
            else None
        )
        own = replace(settings, workers=settings.answers, timeout=settings.answer_timeout)
        self.workers = WorkerPool(own, metrics, report=metrics.writing, overload_concurrency=settings.answers)

    @property
    def name(self) -> str | None:
        """The model's name, without its address; None where there is none."""
        return None if self.model is None else self.model.name

    async def stop(self, grace: float | None = None) -> None:
        """Let answers come to their end within the grace, or what is left of it."""
        await self.workers.stop(grace)
        if self.model is not None:
            self.model.close()

    def count(self, answer: Answer) -> None:
        """An answer came to its end."""
        result = (
            "answered" if answer.answered else "no_passages" if not answer.passages else "not_in_passages"
        )
        tokens = {"input": answer.tokens.input, "output": answer.tokens.output}
        self._metrics.answer(result, answer.seconds, tokens)

    def failed(self, error: AnswerError) -> ApiError:
        """An error as callers are told of it; counted, and logged in a word."""
        self._metrics.answer(error.kind, {}, {})
        status = f" (HTTP {error.status})" if error.status else ""
        logger.error("%s gave no answer: %s%s", self.name, error.kind, status)
        wait = 5.0 if error.retry_after is None else error.retry_after
        code, message = _MESSAGES.get(error.kind, _MESSAGES["failed"])
        return Unavailable(message, code=code, retry_after=wait)

    def stopped(self) -> None:
        """Time was up, or the client had left."""
        self._metrics.answer("stopped", {}, {})


_MESSAGES = {
    "failed": ("model_unavailable", "the language model cannot be reached or fails: try again later"),
    "limited": ("model_busy", "the language model has too many requests: try again later"),
    "refused": (
        "model_refuses",
        "the language model refuses this service (key, model or address): whoever runs it has to look",
    ),
    "rejected": ("model_rejects", "the language model does not take this question with these passages"),
    "cut": ("model_broke_off", "the language model broke off in the middle of the answer"),
    "empty": ("model_silent", "the language model wrote nothing"),
}
