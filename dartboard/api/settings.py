"""Every setting of the service with its default, and where values come from.

Nothing in a request can widen a limit. :func:`service_settings` reads flags, ``DARTBOARD_SERVE_*`` and the
table ``[serve]``; store, collection, models and retriever fall back to the settings that every command
shares, so that a ``dartboard.toml`` that serves ``dartboard search`` serves the service too.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.dataclasses import dataclass

from dartboard.engine import load_settings
from dartboard.engine.settings import SERVICE_TABLE, unconfirmed
from dartboard.engine.trust import foreign
from dartboard.errors import ConfigError

PREFIX = "DARTBOARD_SERVE_"
_SHARED = (
    "store",
    "collection",
    "model",
    "retriever",
    "pair_scorer",
    "answer_model",
    "answer_tokens",
    "trust_models",
)
_WHO_REACHES_IT = ("host", "hosts", "origins", "proxies", "keys")
_MB = 1024 * 1024
_PROCESSORS = os.cpu_count() or 1


def _listed(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


def _no_truth(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("should be a number, not true or false")
    return value


Positive = Annotated[int, Field(ge=1), BeforeValidator(_no_truth)]
Count = Annotated[int, Field(ge=0), BeforeValidator(_no_truth)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(_no_truth)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(_no_truth)]
Names = Annotated[tuple[str, ...], BeforeValidator(_listed)]


@dataclass(
    frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid", str_strip_whitespace=True)
)
class ServiceSettings:
    """What the service opens, whom it lets in, and how much it takes. Text is read as the type of a field."""

    store: str = "index.dartboard"
    collection: str = "default"
    model: str | None = None
    """None: what each collection was made with."""
    retriever: str | None = None
    pair_scorer: str | None = None
    """The pair scorer of ``crossencoder`` and ``hybrid``: late-interaction, which None means too, or
    cross-encoder:PATH. No request can name one."""
    trust_models: str = ""
    """Names of models and retrievers that any collection may choose, with semicolons between; others are used
    only once they are confirmed: see ``docs/security.md``."""
    answer_model: str = ""
    """Who writes answers: openai:MODEL@URL or gemini:MODEL[@URL]; empty: nobody, and ``/ask`` says so."""
    answer_tokens: Positive = 4096
    """Longest answer, in tokens of that model, its thoughts included."""
    demo: bool = True
    """Whether the small corpus that comes with the package is there as the collection ``demo``."""
    home: Path = Path("dartboard-data")
    """Where uploaded files, reports and saved cases live; made when first needed."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535), BeforeValidator(_no_truth)] = 8000
    keys: Path | None = None
    """The file that ``dartboard keys`` writes; None: no key is asked for, and only loopback may be bound."""
    origins: Names = ()
    """Sites whose pages may call the service (CORS); none by default."""
    hosts: Names = ()
    """Host names that requests may carry beside the address bound; guards against DNS rebinding."""
    proxies: Names = ()
    """Addresses or networks of reverse proxies whose ``X-Forwarded-For`` is believed; else all clients
    behind a proxy count as one."""

    query_tokens: Positive = 512
    body_bytes: Positive = 8 * _MB
    upload_bytes: Positive = 256 * _MB
    line_bytes: Positive = 4 * _MB
    answer_bytes: Positive = 32 * _MB
    """What a batch of searches, or a document with its passages, may answer with."""
    k: Positive = 100
    triage_k: Positive = 1000
    pair_candidates: Positive = 24
    """Candidates that a pair scorer (``crossencoder``, ``hybrid``) reads: the best of the first stage."""
    token_budget: Positive = 100_000
    batch: Positive = 100
    vectors: Positive = 2000
    """Rows that ``/select`` takes, and texts that a rerank takes, there 500 at most."""
    documents: Positive = 100_000
    """Lines that one upsert takes."""

    timeout: Seconds = 30.0
    processes: Positive = 1
    """Processes behind one port. With more than one the index is only read, and there are no long tasks."""
    workers: Positive = max(4, min(32, 4 * _PROCESSORS))
    """Searches that are worked on at a time. More than processors: most of the time they wait for the
    encoder, which takes all that wait as one batch."""
    queue: Count = 8
    """Requests that may wait for a worker; those beyond are refused with 429."""
    pair_queue: Count = 4
    """Searches with a pair scorer that may wait; one is worked on at a time."""
    write_queue: Count = 16
    """Changes of collections that may wait beside the two that are worked on; no search waits for them."""
    answers: Positive = 4
    """Answers that are written at a time, beside the searches; four times as many may wait."""
    answer_timeout: Seconds = 120.0
    """Longest time for an answer, in seconds."""
    jobs: Positive = 16
    """Long tasks that are kept, finished ones included; one runs at a time."""
    rate: Amount = 0.0
    """Requests a second that a key (or, without keys, an address) may make; 0: no limit. Keys may have
    their own."""
    cached_queries: Count = 10_000
    grace: Amount = 30.0
    """Seconds that running requests and the running job get when the service is told to stop."""
    log_queries: bool = False
    """Whether logs hold the questions of searches and reranks."""

    @model_validator(mode="after")
    def _processes_fit(self) -> Self:
        most = 4 * _PROCESSORS
        if self.processes > most:
            raise ValueError(
                f"processes must be at most {most} on this machine, four for each processor: got "
                f"{self.processes}, and each of them loads the model"
            )
        if self.processes > 1 and self.store.startswith("memory:"):
            raise ValueError(
                f"{self.store} belongs to one process: serve it with one, or name a store that "
                f"{self.processes} processes can open"
            )
        return self

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the service."""
        return is_loopback(self.host)

    def check_exposure(self) -> None:
        """Refuse to be reachable from elsewhere without a key."""
        if not self.loopback and self.keys is None:
            raise ConfigError(
                f"binding {self.host} lets others in, and no key is asked for: make one with "
                "'dartboard keys create' and start with --keys, or stay on 127.0.0.1"
            )


NAMES = tuple(field.name for field in fields(ServiceSettings))


def is_loopback(host: str) -> bool:
    """Whether a host name or an address, in brackets or not, is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def service_settings(
    flags: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ServiceSettings:
    """Settings from all places.

    Args:
        flags: By name of the setting; None where a flag was not given. They go before all else.
        environment: ``os.environ`` unless given.
        folder: Where to look for ``dartboard.toml``; the current one unless given.

    Raises:
        ConfigError: For a value that cannot be used, a name that is not known, or a file that nobody has
            confirmed and that decides who reaches the service.
    """
    environment = os.environ if environment is None else environment
    given = {name: flags.get(name) for name in _SHARED}
    shared = load_settings(given, environment=environment, folder=folder)
    values: dict[str, Any] = {
        name: getattr(shared.settings, name) for name in _SHARED if shared.sources[name] != "default"
    }
    places: dict[str, str] = {}
    if keys := environment.get("DARTBOARD_KEYS", "").strip():
        values["keys"] = keys
    for name, value in _table(shared.file).items():
        values[name], places[name] = value, f"{shared.file}, [{SERVICE_TABLE}]: "
        if shared.unconfirmed and flags.get(name) is None:
            _refuse_doubtful(shared.file, name, value)
    _refuse_unknown(environment)
    for name in NAMES:
        variable = f"{PREFIX}{name.upper()}"
        if text := environment.get(variable, "").strip():
            values[name], places[name] = text, f"{variable}: "
    values |= {name: value for name, value in flags.items() if value is not None}
    try:
        return ServiceSettings(**values)
    except ValidationError as error:
        wrong = error.errors(include_url=False, include_context=False)[0]
        name = str(wrong["loc"][0]) if wrong["loc"] else ""
        said = wrong["msg"].removeprefix("Value error, ")
        got = f", got {values[name]!r}" if name in values else ""
        raise ConfigError(f"{places.get(name, '')}{name}: {said}{got}".removeprefix(": ")) from None


def _refuse_doubtful(file: Path | None, name: str, value: Any) -> None:
    """A file that came with a folder lets nobody in, and sends nothing elsewhere."""
    what = "it decides who reaches the service" if name in _WHO_REACHES_IT else foreign(name, str(value))
    if what is not None:
        raise unconfirmed(file, f"[{SERVICE_TABLE}] {name}", value, what)


def _refuse_unknown(environment: Mapping[str, str]) -> None:
    """A mistyped limit must not be a limit that does not hold."""
    known = [f"{PREFIX}{name.upper()}" for name in NAMES]
    for variable in sorted(environment):
        if variable.startswith(PREFIX) and variable not in known:
            near = difflib.get_close_matches(variable, known, 1)
            meant = f"did you mean {near[0]}? " if near else ""
            raise ConfigError(
                f"{variable} is no setting of the service: {meant}{PREFIX} is followed by one of "
                f"{', '.join(name.upper() for name in NAMES)}"
            )


def _table(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    table = tomllib.loads(file.read_text(encoding="utf-8")).get(SERVICE_TABLE, {})
    if not isinstance(table, dict):
        raise ConfigError(f"{file}: {SERVICE_TABLE} is a table: write [{SERVICE_TABLE}] above its settings")
    if unknown := sorted(set(table) - set(NAMES)):
        raise ConfigError(
            f"{file}, [{SERVICE_TABLE}]: unknown setting {unknown[0]!r}: there are {', '.join(NAMES)}"
        )
    return table
