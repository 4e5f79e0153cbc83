"""In a crowd, most are turned away at the door: reading a question that nobody will answer costs time too.

Only what workers do is turned away. All else (health, metrics, jobs, pages) comes in as ever.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from dartboard.api.errors import problem, request_id_of
from dartboard.api.workers import Workers

WORKED_ON = frozenset(
    (
        "/api/dartboard/retrieve",
        "/api/dartboard/retrieve/batch",
        "/api/dartboard/select",
        "/api/dartboard/explore",
        "/rerank",
        "/v1/rerank",
        "/v2/rerank",
    )
)


class Door:
    """Refuses (429) before the body is read while a crowd fills the queue."""

    def __init__(self, app: ASGIApp, workers: Workers) -> None:
        self.app = app
        self._workers = workers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and scope["path"] in WORKED_ON and scope["method"] == "POST":
            refusal = self._workers.turned_away()
            if refusal is not None:
                await problem(refusal, request_id_of(scope))(scope, receive, send)
                return
        await self.app(scope, receive, send)
