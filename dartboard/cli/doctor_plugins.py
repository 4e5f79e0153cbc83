"""What ``dartboard doctor`` says of plug-ins: each one is imported, and its name compared with all others."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass

from dartboard.errors import ConfigError
from dartboard.plugins import Kind, Plugin, installed, reason_of


@dataclass(frozen=True, slots=True)
class PluginStatus:
    """A plug-in as it was found; ``why_not`` says why it cannot be used, and is empty where it can."""

    kind: Kind
    name: str
    package: str
    version: str
    target: str
    ok: bool
    why_not: str = ""
    mend: str = ""


def check_plugins() -> list[PluginStatus]:
    """All plug-ins that are installed, by kind and name."""
    found = installed()
    taken = _taken() if found else {}
    statuses = []
    for one in found:
        why, mend = _problem(one, found, taken)
        statuses.append(
            PluginStatus(one.kind, one.name, one.package, one.version, one.target, not why, why, mend)
        )
    return statuses


def _problem(plugin: Plugin, found: Sequence[Plugin], taken: dict[Kind, frozenset[str]]) -> tuple[str, str]:
    """Why a plug-in cannot be used, and what to do about it; twice nothing where it can."""
    rename = f"ask the authors of {plugin.package} for another name"
    if not plugin.usable:
        return "its name cannot be written: letters, digits and _ . + - after a letter are allowed", rename
    if plugin.name in taken[plugin.kind]:
        return f"dartboard has a {plugin.kind} of that name, and its own is the one that is used", rename
    rivals = [one for one in found if (one.kind, one.name) == (plugin.kind, plugin.name) and one != plugin]
    if rivals:
        others = ", ".join(sorted({one.package for one in rivals}))
        return f"{others} has a {plugin.kind} of that name, too, so neither is used", "uninstall one of them"
    try:
        _load(plugin)
    except ConfigError as error:
        why = reason_of(error.__cause__) if error.__cause__ else str(error)
        return why, f"pip install --upgrade {plugin.package}, or pip uninstall {plugin.package}"
    return "", ""


def _load(plugin: Plugin) -> None:
    from dartboard.evaluation.measures import plugged

    with redirect_stdout(sys.stderr):  # what a plug-in prints is no part of the findings
        if plugin.kind == "metric":
            plugged(plugin)
        elif not callable(made := plugin.load()):
            raise ConfigError(f"{plugin} is no class or function but {type(made).__name__}")


def _taken() -> dict[Kind, frozenset[str]]:
    """The names that are dartboard's own."""
    from dartboard.evaluation.measures import MEASURES
    from dartboard.evaluation.registry import EVERYTHING, GROUPS
    from dartboard.mining.judges.registry import NAMES as JUDGES
    from dartboard.retrievers import registry
    from dartboard.selection import METHODS
    from dartboard.stores.urls import SCHEMES

    return {
        "retriever": registry.NAMES,
        "store": SCHEMES,
        "selector": frozenset({*METHODS, *EVERYTHING, *GROUPS}),
        "judge": JUDGES,
        "metric": frozenset(MEASURES),
    }
