"""What the service counts, in Prometheus' text format.

Names carry their unit. Labels have few values: routes are templates as ``/collections/{name}``, never paths,
and methods outside a short list are ``OTHER``, so no client can make the series grow. Where several processes
serve one port, ``PROMETHEUS_MULTIPROC_DIR`` (set by ``dartboard serve``) makes prometheus_client keep the
values in files, and whichever process is asked answers for all of them.
"""

import os
from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from dartboard.version import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
UNMATCHED = "unmatched"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
_COUNTS = (0, 1, 2, 3, 5, 8, 10, 15, 20, 30, 50, 100)
_POOLS = (0, 1, 5, 10, 20, 50, 100, 200, 500, 1000)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """All series of one application, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = self._histogram(
            "request_seconds", "From the first byte of a request to the last of its answer.",
            _SECONDS, "route", "method", "status",
        )  # fmt: skip
        self._stages = self._histogram("stage_seconds", "Time of one stage of a search.", _SECONDS, "stage")
        self._running = self._gauge("work_running", "Threads that are busy, by kind of work.", "work")
        self._waiting = self._gauge("work_waiting", "Requests that wait for a thread.", "work")
        self._cache = self._counter(
            "query_cache", "Questions whose vector was known (hit), or had to be made (miss).", "result"
        )
        self._batches = self._histogram("encoder_batch_size", "Questions encoded in one call.", _SIZES)
        self._picks = self._histogram("picks", "Passages in an answer.", _COUNTS)
        self._candidates = self._histogram("candidates", "Candidates that an answer was picked from.", _POOLS)
        self._near_copies = self._counter("near_copies", "Candidates removed as near-duplicates.")
        self._rejected = self._counter("rejected", "Requests that were refused, by reason.", "reason")
        self._jobs = self._counter("jobs", "Long tasks that reached a state.", "state")
        self._answers = self._counter("answers", "Answers that were asked for, by how they ended.", "result")
        self._answer_seconds = self._histogram(
            "answer_seconds", "From the question to the first words, and to the end.", _LONG, "until"
        )
        self._answer_tokens = self._counter("answer_tokens", "Tokens of prompts and of answers.", "kind")
        version = Gauge(
            "dartboard_build_info",
            "Always 1; the version is in the label.",
            ["version"],
            registry=self.registry,
            multiprocess_mode="max",
        )
        version.labels(__version__).set(1)
        for result in ("hit", "miss"):
            self._cache.labels(result)

    def observe_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One answered request; ``route`` is the template that it matched, or UNMATCHED."""
        method = method if method in METHODS else "OTHER"
        self._requests.labels(route, method, str(status)).observe(seconds)

    def observe_search(self, facts: Mapping[str, Any], picks: int) -> None:
        """What a search says of itself: ``seconds`` by stage, ``candidates``, ``near_copies``."""
        for stage, seconds in facts["seconds"].items():
            self._stages.labels(stage).observe(seconds)
        self._candidates.observe(facts["candidates"])
        self._near_copies.inc(facts["near_copies"])
        self._picks.observe(picks)

    def work(self, name: str, running: int, waiting: int) -> None:
        """How busy the threads of one kind of work are now."""
        self._running.labels(name).set(running)
        self._waiting.labels(name).set(waiting)

    def answer(self, result: str, seconds: Mapping[str, float], tokens: Mapping[str, int]) -> None:
        """An answer came to its end."""
        self._answers.labels(result).inc()
        for until in ("first", "total"):
            if until in seconds:
                self._answer_seconds.labels(until).observe(seconds[until])
        for kind, count in tokens.items():
            self._answer_tokens.labels(kind).inc(count)

    def cache(self, hit: bool) -> None:
        """Whether a question's vector was known."""
        self._cache.labels("hit" if hit else "miss").inc()

    def batch(self, size: int) -> None:
        """How many questions were encoded together."""
        self._batches.observe(size)

    def rejected(self, reason: str) -> None:
        """A request was refused; ``reason`` is a fixed word."""
        self._rejected.labels(reason).inc()

    def job(self, state: str) -> None:
        """A long task came into a state."""
        self._jobs.labels(state).inc()

    def render(self) -> bytes:
        """Everything, of all processes of the service."""
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self.registry)
        shared = CollectorRegistry()
        MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
        return generate_latest(shared)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(f"dartboard_{name}", text, labels, registry=self.registry, buckets=buckets)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(f"dartboard_{name}", text, labels, registry=self.registry, multiprocess_mode="livesum")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"dartboard_{name}", text, labels, registry=self.registry)
