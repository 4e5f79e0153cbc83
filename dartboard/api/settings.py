"""Every setting of the service with its default, and where values come from.

Nothing in a request can widen a limit. :func:`service_settings` reads flags, ``DARTBOARD_SERVE_*`` and the
table ``[serve]``; store, collection, models and retriever fall back to the settings that every command
shares, so that a ``dartboard.toml`` that serves ``dartboard search`` serves the service too.
pydantic-settings would be one more dependency, and knows nothing of files that nobody has confirmed.
"""

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from ipaddress import ip_address
from pathlib import Path
from typing import Any, get_type_hints

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
_WHO_REACHES_IT = ("host", "hosts", "origins", "keys")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
_MB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """What the service opens, whom it lets in, and how much it takes."""

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
    processes: int = 1
    """Processes behind one port. With more than one the index is only read, and there are no long tasks."""
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
        for name in NAMES:
            value = getattr(self, name)
            if name in _MAY_BE_ZERO:
                if not 0 <= value < float("inf"):
                    raise ConfigError(f"{name} must be >= 0, got {value}")
            elif name in ("timeout", "answer_timeout"):
                if not 0 < value < float("inf"):
                    raise ConfigError(f"{name} must be a positive number of seconds, got {value}")
            elif name == "port":
                if not 0 <= value <= 65535:
                    raise ConfigError(f"port must be in 0 to 65535, got {value}")
            elif isinstance(value, int) and not isinstance(value, bool) and value < 1:
                raise ConfigError(f"{name} must be >= 1, got {value}")
        most = 4 * (os.cpu_count() or 1)
        if self.processes > most:
            raise ConfigError(
                f"processes must be at most {most} on this machine, four for each processor: got "
                f"{self.processes}, and each of them loads the model"
            )
        if self.processes > 1 and self.store.startswith("memory:"):
            raise ConfigError(
                f"{self.store} belongs to one process: serve it with one, or name a store that "
                f"{self.processes} processes can open"
            )

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


_MAY_BE_ZERO = frozenset({"queue", "write_queue", "cached_queries", "rate", "batch_window", "grace"})
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
    if keys := environment.get("DARTBOARD_KEYS", "").strip():
        values["keys"] = Path(keys)
    for name, value in _table(shared.file).items():
        values[name] = _read(name, value, f"{shared.file}, [{SERVICE_TABLE}]")
        if shared.unconfirmed and flags.get(name) is None:
            _refuse_doubtful(shared.file, name, values[name])
    _refuse_unknown(environment)
    for name in NAMES:
        variable = f"{PREFIX}{name.upper()}"
        if text := environment.get(variable, "").strip():
            values[name] = _read(name, text, variable)
    values |= {name: value for name, value in flags.items() if value is not None}
    return ServiceSettings(**values)


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


def _read(name: str, value: Any, where: str) -> Any:
    """A value in the type of its setting; variables are text, and a file may hold text too."""
    wanted = str(get_type_hints(ServiceSettings)[name])
    kind, read = next((kind, read) for part, (kind, read) in _KINDS.items() if part in wanted)
    try:
        return read(value)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"{where}: {name} must be {kind}, got {value!r}") from None


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(value)
    return value.strip()


def _whole(value: Any) -> int:
    if isinstance(value, bool) or float(value) != int(value):
        raise ValueError(value)
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise ValueError(value)
    return float(value)


def _truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = _text(value).lower()
    if word not in (*_TRUE, *_FALSE):
        raise ValueError(value)
    return word in _TRUE


def _list(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else _text(value).split(",")
    return tuple(_text(one) for one in listed)


_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "tuple": ("a list of names", _list),
    "Path": ("a path", lambda value: Path(_text(value))),
    "bool": ("true or false", _truth),
    "int": ("a whole number", _whole),
    "float": ("a number", _number),
    "str": ("text", _text),
}
"""By what the annotation of a setting holds, the most telling first."""
