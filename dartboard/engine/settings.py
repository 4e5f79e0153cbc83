"""Settings of an engine: from flags, then ``DARTBOARD_*`` variables, then a TOML file.

The file is that of ``DARTBOARD_CONFIG``, otherwise ``dartboard.toml`` in the current folder, otherwise the
user's own. Each value records its origin. A file in the current folder may come from somebody else: settings
that would send or load something must be confirmed once (``dartboard config --trust``).

We use ``tomllib`` and a dataclass: pydantic-settings would add pydantic to every installation, and only the
service needs that.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from dartboard.config import RerankerType
from dartboard.engine.trust import foreign, is_trusted_file, names_in, shown
from dartboard.errors import ConfigError
from dartboard.selection.kernel import Auto
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA

PREFIX = "DARTBOARD_"
FILE = "dartboard.toml"
SERVICE_TABLE = "serve"
"""The table of ``dartboard serve`` in the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings with their defaults; values are checked where they are used."""

    store: str = "index.dartboard"
    collection: str = "default"
    model: str = "default"
    retriever: str = "hybrid"
    pair_scorer: str = "none"
    method: str = "dartboard"
    k: int = 5
    triage_k: int = 100
    sigma: float | Auto = "auto"
    chunk_method: str = "auto"
    chunk_size: int = 256
    chunk_overlap: int = 32
    answer_model: str = ""
    answer_tokens: int = 4096
    answer_timeout: int = 600
    ray: str = "off"
    trust_models: str = ""


MEANING: Mapping[str, str] = {
    "store": "the store of the index: a file path, postgresql://…, milvus://…",
    "collection": "the collection in the store",
    "model": "the embedding model: default, onnx:PATH, sentence-transformers:NAME, openai:MODEL@URL …",
    "retriever": "finds the candidates: hybrid, dense, bm25, colbert, rrf:dense,bm25 …",
    "pair_scorer": "scores pairs of question and passage: none, late-interaction, cross-encoder:PATH",
    "method": "selects from the candidates: dartboard, mmr, top_k …",
    "k": "how many passages are selected",
    "triage_k": "how many candidates they are selected from",
    "sigma": "the width of P(t|q) around the question: auto or a number",
    "chunk_method": "how documents are split: auto, sentences, tokens",
    "chunk_size": "longest chunk, in tokens of the model",
    "chunk_overlap": "tokens that neighbouring chunks share, if a text is split by tokens",
    "answer_model": "writes answers: openai:MODEL@URL, gemini:MODEL[@URL]; keys are in the environment",
    "answer_tokens": "longest answer, in tokens of that model, including its reasoning",
    "answer_timeout": "time limit of dartboard ask in seconds; the service has its own limit",
    "trust_models": "models and retrievers that any index may choose, as NAME; NAME …",
    "ray": "where index encodes: off (in this process), auto, local, HOST:PORT, ray://HOST:PORT",
}
"""A one-line description of each setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """Settings, and the origin of each value."""

    settings: Settings
    sources: Mapping[str, str]
    file: Path | None
    unconfirmed: bool = False
    """Whether the file is in the current folder and the user has not confirmed it."""

    @property
    def trusted(self) -> tuple[str, ...]:
        """The names that any index may choose."""
        return names_in(self.settings.trust_models)

    @property
    def pair_scorer(self) -> str | None:
        """The name of the pair scorer, if one is used."""
        return None if self.settings.pair_scorer == "none" else self.settings.pair_scorer

    @property
    def reranker_type(self) -> RerankerType:
        """``hybrid`` with a pair scorer, which then scores one pair per candidate."""
        return "cosine" if self.pair_scorer is None else "hybrid"

    def chosen(self, name: str) -> Any:
        """The value of a setting that is not the default; otherwise None."""
        return getattr(self.settings, name) if self.sources[name] != "default" else None

    def doubts(self) -> dict[str, str]:
        """Settings of an unconfirmed file that would send or load something, with a description."""
        if not self.unconfirmed:
            return {}
        ours = (name for name, source in self.sources.items() if source == str(self.file))
        found = {name: foreign(name, str(getattr(self.settings, name))) for name in ours}
        return {name: what for name, what in found.items() if what is not None}


def load_settings(
    flags: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    confirmed: bool = True,
) -> Configured:
    """Settings from all three places.

    Args:
        flags: Values by setting; None means not given.
        options: The names of flags that differ from their setting, for error messages.
        environment: By default that of the process.
        folder: Where ``dartboard.toml`` is looked up; by default the current folder.
        confirmed: False also returns settings that need a confirmation: to show them, not to use them.

    Raises:
        ConfigError: a value has the wrong type, or a setting needs a confirmation.
    """
    environment = os.environ if environment is None else environment
    file = _file(environment, folder or Path.cwd())
    layers: list[tuple[str, Mapping[str, Any]]] = [
        (str(file), _from_file(file) if file else {}),
        ("environment", _from_environment(environment)),
        ("flag", {name: value for name, value in (flags or {}).items() if value is not None}),
    ]
    values: dict[str, Any] = {}
    sources = dict.fromkeys(_types(), "default")
    for source, layer in layers:
        for name, value in layer.items():
            where = f"{PREFIX}{name.upper()}" if source == "environment" else source
            values[name] = _checked(name, value, where, options or {})
            sources[name] = where
    found = Configured(
        settings=Settings(**values), sources=sources, file=file, unconfirmed=_unconfirmed(file, environment)
    )
    if confirmed and (doubts := found.doubts()):
        name, what = next(iter(doubts.items()))
        raise unconfirmed(file, name, getattr(found.settings, name), what)
    return found


def unconfirmed(file: Path | None, name: str, value: object, what: str) -> ConfigError:
    """The error message for a setting of an unconfirmed file."""
    return ConfigError(
        f"{file} sets {name} = {shown(str(value))!r}: {what}. A file in the current folder may have come "
        "with it, so nothing was done. If it is yours, or you have read it: dartboard config --trust (once, "
        "until it changes). Otherwise set it with a flag or a variable, or use another folder"
    )


def _unconfirmed(file: Path | None, environment: Mapping[str, str]) -> bool:
    """Whether the file is neither named by the user, nor in the user's own folder, nor confirmed."""
    if file is None or environment.get(f"{PREFIX}CONFIG"):
        return False
    from platformdirs import user_config_path

    own = user_config_path("dartboard") / FILE
    return file.resolve() != own.resolve() and not is_trusted_file(file)


def _file(environment: Mapping[str, str], folder: Path) -> Path | None:
    if named := environment.get(f"{PREFIX}CONFIG"):
        if not Path(named).is_file():
            raise ConfigError(f"{PREFIX}CONFIG names {named!r}, which is not a file")
        return Path(named)
    from platformdirs import user_config_path

    places = (folder / FILE, user_config_path("dartboard") / FILE)
    return next((place for place in places if place.is_file()), None)


def _from_file(file: Path) -> dict[str, Any]:
    try:
        stored = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    stored.pop(SERVICE_TABLE, None)
    if unknown := sorted(set(stored) - set(_types())):
        raise ConfigError(f"{file}: unknown setting {unknown[0]!r}: there are {', '.join(_types())}")
    return stored


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found = {name: environment.get(f"{PREFIX}{name.upper()}", "") for name in _types()}
    return {name: value for name, value in found.items() if value.strip()}


def _types() -> dict[str, Any]:
    hints = get_type_hints(Settings)
    return {field.name: hints[field.name] for field in fields(Settings)}


def _checked(name: str, value: Any, where: str, options: Mapping[str, str]) -> Any:
    """The value in the type of its setting; text is parsed if a number is expected."""
    wanted = _types()[name]
    try:
        if wanted is str and isinstance(value, str) and value.strip():
            return value.strip()
        if wanted is int and not isinstance(value, bool) and float(value) == int(value):
            return int(value)
        if wanted not in (str, int) and not isinstance(value, bool):
            if value in get_args(get_args(wanted)[1]):
                return value
            if SMALLEST_SIGMA <= (number := float(value)) <= LARGEST_SIGMA:
                return number
    except (TypeError, ValueError, OverflowError):
        pass
    kind = {str: "text", int: "a whole number"}.get(
        wanted, f"a number or 'auto' (numbers from {SMALLEST_SIGMA:g} to {LARGEST_SIGMA:g})"
    )
    option = options.get(name, f"--{name.replace('_', '-')}")
    subject = option if where == "flag" else f"{where}: {name}"
    raise ConfigError(f"{subject} must be {kind}, got {value!r}")
