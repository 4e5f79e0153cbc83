"""Why there is no answer from a model.

::

    EndpointError
    ├── RefusedError     key, model or address are refused: asking on is no use
    ├── NoAnswersError   too many calls in a row without a readable answer
    └── AnswerError      a streamed answer did not come, or broke off
"""

from dartboard.errors import EndpointError
from dartboard.http_client import Kind


class RefusedError(EndpointError):
    """The endpoint refuses this key, model or address: asking again, or about something else, is no use."""


class NoAnswersError(EndpointError):
    """A model has given no readable answer for so long that asking on is no use."""


class AnswerError(EndpointError):
    """A model gave no answer, or half of one. ``status`` is the endpoint's, 0 where it gave none.

    The message may quote the endpoint, which may quote the question: it is for whoever asked. ``kind`` and
    ``status`` are for logs.
    """

    def __init__(
        self, kind: Kind, message: str, *, status: int = 0, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
