"""Where the service's settings come from: flags, ``DARTBOARD_SERVE_*``, the table ``[serve]``, the rest.

Store, collection, models and retriever fall back to the settings that every command shares, so that a
``dartboard.toml`` that serves ``dartboard search`` serves the service too.
"""

import difflib
import os
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

from dartboard.api.settings import NAMES, ServiceSettings
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
    "reranker",
    "answer_model",
    "answer_tokens",
    "trust_models",
)
_WHO_REACHES_IT = ("host", "hosts", "origins", "keys")
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def service_settings(
    flags: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> ServiceSettings:
    """Settings from all places, the first that has a value; flags that are None were not given."""
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
