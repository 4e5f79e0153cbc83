"""What the service counts, in Prometheus' text format.

Names carry their unit. Labels have few values: routes are templates as ``/collections/{name}``, never paths,
and methods outside a short list are ``OTHER``, so no client can make the series grow.
"""

import math
from collections.abc import Mapping
from typing import Any, TypeGuard

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from dartboard.version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
UNMATCHED = "unmatched"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
STATES = ("queued", "running", "done", "failed", "cancelled")

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
_COUNTS = (0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100)
_POOLS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1000)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
_RATIOS = tuple(step / 10 for step in range(11))
_LONGEST_LABEL = 40
_MOST_LABELS = 50


class Metrics:
    """All series of one application, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._labels: dict[str, set[str]] = {}
        self._requests = self._histogram(
            "request_seconds", "From the first byte of a request to the last of its answer.",
            _SECONDS, "route", "method", "status",
        )  # fmt: skip
        self._stages = self._histogram("stage_seconds", "Time of one stage of a search.", _SECONDS, "stage")
        self._waiting = self._gauge("queue_waiting", "Requests that wait for a worker.")
        self._busy = self._gauge("workers_busy", "Workers that are busy.")
        self._writers_busy = self._gauge("writers_busy", "Threads that change collections now.")
        self._writes_waiting = self._gauge("writes_waiting", "Changes of collections that wait for a thread.")
        self._cache = self._counter(
            "query_cache", "Questions whose vector was known (hit), or had to be made (miss).", "result"
        )
        self._batches = self._histogram("encoder_batch_size", "Questions encoded in one call.", _SIZES)
        self._picks = self._histogram("picks", "Passages in an answer.", _COUNTS)
        self._candidates = self._histogram("candidates", "Candidates that an answer was picked from.", _POOLS)
        self._redundancy = self._histogram(
            "redundancy_removed_ratio",
            "Share of the candidates left out that a pick stands for.",
            _RATIOS,
        )
        self._rejected = self._counter("rejected", "Requests that were refused, by reason.", "reason")
        self._jobs = self._counter("jobs", "Long tasks that reached a state.", "state")
        self._answers = self._counter("answers", "Answers that were asked for, by how they ended.", "result")
        self._answer_seconds = self._histogram(
            "answer_seconds", "From the question to the first words, and to the end.", _LONG, "until"
        )
        self._answer_tokens = self._counter("answer_tokens", "Tokens of prompts and of answers.", "kind")
        self._writing = self._gauge("answers_writing", "Answers that are being written.")
        self._answers_waiting = self._gauge("answers_waiting", "Requests that wait to be answered.")
        self._gauge("build_info", "Always 1; the version is in the label.", "version").labels(
            __version__
        ).set(1)
        for result in ("hit", "miss"):
            self._cache.labels(result)
        for state in STATES:
            self._jobs.labels(state)

    def observe_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One answered request; ``route`` is the template that it matched, or UNMATCHED."""
        method = method if method in METHODS else "OTHER"
        self._requests.labels(route, method, str(status)).observe(seconds)

    def observe_search(self, metadata: Mapping[str, Any]) -> None:
        """What a search says of itself: ``seconds`` by stage, ``candidates``, ``stands_for`` of the picks."""
        for stage, seconds in metadata.get("seconds", {}).items():
            if _finite(seconds):
                self._stages.labels(self._bounded("stage", str(stage))).observe(seconds)
        candidates = metadata.get("candidates")
        if _finite(candidates):
            self._candidates.observe(candidates)
        picks = _picks(metadata)
        if picks is not None:
            self._picks.observe(picks)
        removed = _removed(metadata)
        if removed is not None:
            self._redundancy.observe(removed)

    def queue(self, running: int, waiting: int) -> None:
        """How busy the workers are now."""
        self._busy.set(running)
        self._waiting.set(waiting)

    def write_queue(self, running: int, waiting: int) -> None:
        """How many threads change collections now, and how many changes wait for one."""
        self._writers_busy.set(running)
        self._writes_waiting.set(waiting)

    def writing(self, running: int, waiting: int) -> None:
        """How many answers are being written now, and how many requests wait for that."""
        self._writing.set(running)
        self._answers_waiting.set(waiting)

    def answer(self, result: str, seconds: Mapping[str, float], tokens: Mapping[str, int]) -> None:
        """An answer came to its end; ``result`` is a short fixed word."""
        self._answers.labels(self._bounded("result", result)).inc()
        for until in ("first", "total"):
            if until in seconds:
                self._answer_seconds.labels(until).observe(seconds[until])
        for kind, count in tokens.items():
            self._answer_tokens.labels(self._bounded("kind", kind)).inc(count)

    def cache(self, hit: bool) -> None:
        """Whether a question's vector was known."""
        self._cache.labels("hit" if hit else "miss").inc()

    def batch(self, size: int) -> None:
        """How many questions were encoded together."""
        self._batches.observe(size)

    def rejected(self, reason: str) -> None:
        """A request was refused; ``reason`` is a short fixed word."""
        self._rejected.labels(self._bounded("reason", reason)).inc()

    def job(self, state: str) -> None:
        """A long task came into a state."""
        self._jobs.labels(self._bounded("state", state)).inc()

    def render(self) -> bytes:
        """Everything, in the text format that Prometheus scrapes."""
        return generate_latest(self.registry)

    def _bounded(self, label: str, value: str) -> str:
        """The value, unless it is long or one too many; a mistake elsewhere then cannot fill the memory."""
        known = self._labels.setdefault(label, set())
        if value not in known:
            if len(known) >= _MOST_LABELS or len(value) > _LONGEST_LABEL:
                return "other"
            known.add(value)
        return value

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"dartboard_{name}", text, labels, registry=self.registry, buckets=buckets)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"dartboard_{name}", text, labels, registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"dartboard_{name}", text, labels, registry=self.registry)


def _finite(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and math.isfinite(value)


def _picks(metadata: Mapping[str, Any]) -> int | None:
    for name in ("gain", "gains", "retriever_score", "indices"):
        if isinstance(metadata.get(name), list | tuple):
            return len(metadata[name])
    return None


def _removed(metadata: Mapping[str, Any]) -> float | None:
    """The candidates that a pick stands for, itself not counted, over all candidates that were not picked."""
    groups, candidates, picks = metadata.get("stands_for"), metadata.get("candidates"), _picks(metadata)
    if not isinstance(groups, list | tuple) or not _finite(candidates) or picks is None:
        return None
    if metadata.get("targets", "candidates") != "candidates" or float(candidates) <= picks:
        return None
    stood_for = {member for group in groups for member in group}
    return min(1.0, max(0, len(stood_for) - picks) / (float(candidates) - picks))
