"""Long tasks as callers see them."""

from typing import Any, Literal

from pydantic import Field

from dartboard.api.schemas.common import Answer


class JobStatus(Answer):
    """A task and how far it is."""

    id: str = Field(description="Its id.", examples=["3f9a1c0b7d2e4f68"])
    kind: str = Field(description="What it does.", examples=["evaluate"])
    state: Literal["queued", "running", "done", "failed", "cancelled"] = Field(
        description="Where it stands.", examples=["running"]
    )
    done: int = Field(description="Steps that are finished.", examples=[40])
    total: int = Field(description="Steps in all; 0 while that is not known.", examples=[100])
    message: str = Field(description="What it is doing now.", examples=["Answering synthetic_clustered"])
    created: float = Field(description="Seconds since 1970.", examples=[1767225600.0])
    started: float | None = Field(
        description="Seconds since 1970; null while it waits.", examples=[1767225601.0]
    )
    finished: float | None = Field(
        description="Seconds since 1970; null until it has ended.", examples=[None]
    )
    result: dict[str, Any] | None = Field(
        description="What it found, once it is done: what the operation that began it would have answered.",
        examples=[{"dataset": "synthetic_clustered", "metrics": {"ndcg@5": 0.9}}],
    )
    error: str | None = Field(description="Why it failed.", examples=[None])


class JobList(Answer):
    """The tasks that are kept, newest first."""

    jobs: list[JobStatus] = Field(description="The tasks.", examples=[[]])


class JobStarted(Answer):
    """A task that goes on by itself."""

    job_id: str = Field(description="Its id.", examples=["3f9a1c0b7d2e4f68"])
    status_url: str = Field(
        description="Where to ask how far it is, and, with DELETE, to stop it.",
        examples=["/api/dartboard/jobs/3f9a1c0b7d2e4f68"],
    )
