"""Search options as the attributes of a framework's component, checked when they are set."""

from dataclasses import fields
from inspect import signature
from typing import Any

from dartboard.errors import ConfigError
from dartboard.search_options import SearchOptions

_NAMED_ELSEWHERE = {"top_n": "k", "top_k": "k"}


def check_names(settings: Any, owner: str) -> None:
    """An error for a setting that other rerankers call by another name, with the name that it has here."""
    for theirs, ours in _NAMED_ELSEWHERE.items():
        if isinstance(settings, dict) and theirs in settings:
            raise ConfigError(f"{theirs} is called {ours} here: {owner}({ours}={settings[theirs]!r})")


def options_of(owner: Any, **changes: Any) -> SearchOptions:
    """The options that a component has as attributes; those in ``changes`` are taken from there."""
    names = [field.name for field in fields(SearchOptions) if hasattr(owner, field.name)]
    if unknown := sorted(set(changes) - {"k", "where", *names}):
        raise ConfigError(f"unknown option {unknown[0]!r}: there are {', '.join(names)}")
    return SearchOptions(**{name: getattr(owner, name) for name in names} | changes)


def settings_of(component: Any, *without: str) -> dict[str, Any]:
    """The parameters of a component's ``__init__`` with their values, which are its attributes."""
    names = list(signature(type(component).__init__).parameters)[1:]
    return {name: getattr(component, name) for name in names if name not in without}
