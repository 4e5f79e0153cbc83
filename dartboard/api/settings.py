"""Every limit of the service with its default, checked when it is made.

Nothing in a request can widen them. Where a value comes from (flag, variable, file) is the command line's
business; here it is only a number that must make sense.
"""

import os
from dataclasses import dataclass, fields
from pathlib import Path

from dartboard.errors import ConfigError

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What the service opens, whom it lets in, and how much it takes."""

    store: str = "index.dartboard"
    collection: str = "default"
    model: str | None = None
    """None: what each collection was made with."""
    retriever: str | None = None
    reranker: str | None = None
    """The pair scorer of ``crossencoder`` and ``hybrid``: late-interaction, which None means too, or
    cross-encoder:PATH. No request can name one."""
    trust_models: str = ""
    """Names of models and retrievers that any collection may choose, with semicolons between; others are used
    only once they are confirmed: see ``docs/security.md``."""
    answer_model: str = ""
    """Who writes answers: openai:MODEL@URL or gemini:MODEL[@URL]; empty: nobody, and ``/ask`` says so."""
    answer_tokens: int = 4096
    """Longest answer, in tokens of that model, its thoughts included."""
    demo: bool = True
    """Whether the small corpus that comes with the package is there as the collection ``demo``."""
    home: Path = Path("dartboard-data")
    """Where uploaded files, reports and saved cases live; made when first needed."""

    host: str = "127.0.0.1"
    port: int = 8000
    keys: Path | None = None
    """The file that ``dartboard keys`` writes; None: no key is asked for, and only loopback may be bound."""
    origins: tuple[str, ...] = ()
    """Sites whose pages may call the service (CORS); none by default."""
    hosts: tuple[str, ...] = ()
    """Host names that requests may carry beside the address bound; guards against DNS rebinding."""

    query_tokens: int = 512
    body_bytes: int = 8 * _MB
    upload_bytes: int = 256 * _MB
    line_bytes: int = 4 * _MB
    answer_bytes: int = 32 * _MB
    """What a batch of searches, or a document with its passages, may answer with."""
    k: int = 100
    triage_k: int = 1000
    token_budget: int = 100_000
    batch: int = 100
    vectors: int = 2000
    """Rows that ``/select`` takes, and texts that a rerank takes, there 500 at most."""
    documents: int = 100_000
    """Lines that one upsert takes."""

    timeout: float = 30.0
    workers: int = max(4, min(32, 8 * (os.cpu_count() or 1)))
    """Requests that are worked on at a time. More than processors: most of the time they wait for the
    encoder, which takes all that wait as one batch."""
    queue: int = 16
    """Requests that may wait for a worker; those beyond are refused with 429."""
    write_queue: int = 16
    """Changes of collections that may wait beside the two that are worked on; those beyond are refused with
    429. They have threads of their own, so searches never wait for them."""
    answers: int = 4
    """Answers that are written at a time, beside the searches."""
    answer_timeout: float = 120.0
    """Longest time for an answer, in seconds."""
    jobs: int = 16
    """Long tasks that are kept, finished ones included; one runs at a time. A quarter of the places (at least
    one, where there are two) cannot be taken by tasks of one kind."""
    rate: float = 1000.0
    """Requests a second that a key (or, without keys, an address) may make; 0: no limit. The default is
    several times what one process can search, so it stops only floods, which cost more than they look: also
    a request that is refused must be read."""
    burst: int | None = None
    """Requests at once; None: as many as the rate allows in a second."""
    cached_queries: int = 10_000
    batch_window: float = 0.002
    """Seconds that a question may wait for others to be encoded with it."""
    grace: float = 30.0
    """Seconds that running requests and the running job get when the service is told to stop."""
    log_queries: bool = False
    """Whether logs hold the questions of searches and reranks."""

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} must be >= 1, got {value}")
        for name in ("queue", "write_queue", "cached_queries", "rate", "batch_window", "grace"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be >= 0, got {getattr(self, name)}")
        for name in ("timeout", "answer_timeout"):
            if not 0 < getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} must be a positive number of seconds, got {getattr(self, name)}")
        if not 0 <= self.port <= 65535:
            raise ConfigError(f"port must be in 0 to 65535, got {self.port}")

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        from ipaddress import ip_address

        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    def check_exposure(self) -> None:
        """Refuse to be reachable from elsewhere without a key."""
        if not self.loopback and self.keys is None:
            raise ConfigError(
                f"binding {self.host} lets others in, and no key is asked for: make one with "
                "'dartboard keys create' and start with --keys, or stay on 127.0.0.1"
            )


_AT_LEAST_ONE = (
    "query_tokens",
    "body_bytes",
    "upload_bytes",
    "line_bytes",
    "answer_bytes",
    "k",
    "triage_k",
    "token_budget",
    "batch",
    "vectors",
    "documents",
    "workers",
    "answer_tokens",
    "answers",
    "jobs",
    "burst",
)
NAMES = tuple(field.name for field in fields(ServiceSettings))
