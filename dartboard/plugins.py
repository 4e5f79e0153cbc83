"""Plug-ins: retrievers, stores, selectors, judges and metrics of other packages, by entry points.

A package adds a name with an entry point in one of the groups ``dartboard.retrievers``, ``dartboard.stores``,
``dartboard.selectors``, ``dartboard.judges`` and ``dartboard.metrics``. Listing reads the metadata of
installed packages without importing them; a plug-in is imported when its name is used. dartboard looks up its
own names first, so that no package can replace them, and a name that two packages claim is an error.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, get_args

from dartboard.errors import ConfigError, DartboardError

if TYPE_CHECKING:
    from importlib.metadata import Distribution, EntryPoint

Kind = Literal["retriever", "store", "selector", "judge", "metric"]

KINDS: tuple[Kind, ...] = get_args(Kind)

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*\Z")
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Plugin:
    """A name that a package adds; ``target`` is its ``module:object``."""

    kind: Kind
    name: str
    package: str
    version: str
    target: str
    entry: "EntryPoint" = field(compare=False, repr=False)

    @property
    def usable(self) -> bool:
        """Whether the name is valid: ``:``, ``,``, ``=`` and ``@`` have a meaning in names."""
        return _NAME.match(self.name) is not None

    def load(self) -> Any:
        """Import the object of the plug-in; any error of its package becomes a ``ConfigError``."""
        try:
            return self.entry.load()
        except (Exception, SystemExit) as error:
            raise ConfigError(f"{self} cannot be loaded: {reason_of(error)}. {self._advice()}") from error

    def make(self, members: Sequence[str], *arguments: Any, **options: Any) -> Any:
        """Call the object of the plug-in; the result must have all ``members``."""
        factory = self.load()
        if not callable(factory):
            raise ConfigError(
                f"{self} is not a class or function but {type(factory).__name__}. {self._advice()}"
            )
        made = self.call(factory, *arguments, **options)
        if lacking := [member for member in members if not hasattr(made, member)]:
            raise ConfigError(
                f"{self} made a {type(made).__name__}, which is not a {self.kind}: "
                f"it has no {', '.join(lacking)}. {self._advice()}"
            )
        return made

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call a function of the plug-in; an unexpected error becomes a ``ConfigError``."""
        try:
            return function(*arguments, **options)
        except (DartboardError, OSError):
            raise
        except Exception as error:
            raise ConfigError(f"{self} failed: {reason_of(error)}. {self._advice()}") from error

    def __str__(self) -> str:
        return f"plug-in {self.name!r} (a {self.kind} of {self.package} {self.version})"

    def _advice(self) -> str:
        return f"Upgrade or uninstall {self.package}; dartboard doctor checks all plug-ins"


def installed(kind: Kind | None = None) -> list[Plugin]:
    """All plug-ins, or those of a kind, sorted by kind and name; nothing is imported.

    Packages that are installed later are not seen by this process.
    """
    return [found for found in _scan(tuple(sys.path)) if kind in (None, found.kind)]


def names(kind: Kind) -> list[str]:
    """The names that plug-ins add to a kind, sorted; nothing is imported."""
    return sorted({found.name for found in installed(kind) if found.usable})


def find(kind: Kind, name: str) -> Plugin | None:
    """The plug-in with that name, or None; a name that several packages claim is an error."""
    found = [one for one in installed(kind) if one.name == name and one.usable]
    if len(found) > 1:
        packages = " and ".join(f"{one.package} {one.version}" for one in found)
        raise ConfigError(f"{packages} both have a {kind} {name!r}: uninstall one of them")
    return found[0] if found else None


@lru_cache(maxsize=8)
def _scan(path: tuple[str, ...]) -> tuple[Plugin, ...]:
    """The plug-ins along ``sys.path``; of several versions of a package the first counts, as for imports."""
    from importlib.metadata import distributions

    found: dict[str, list[Plugin]] = {}
    for distribution in distributions():
        try:
            listed = list(_of(distribution))
        except (OSError, ValueError, TypeError, KeyError):  # skip only the damaged package
            continue
        if listed:
            found.setdefault(_SEPARATORS.sub("-", listed[0].package).lower(), listed)
    return tuple(sorted({plugin for listed in found.values() for plugin in listed}))


def _of(distribution: "Distribution") -> Iterator[Plugin]:
    for entry in distribution.entry_points:
        room, _, group = entry.group.partition(".")
        kind = next((kind for kind in KINDS if group == f"{kind}s"), None)
        if room == "dartboard" and kind is not None:
            yield Plugin(
                kind=kind,
                name=entry.name.lower() if kind == "store" else entry.name,
                package=str(distribution.metadata["Name"] or "?"),
                version=str(distribution.version or "?"),
                target=entry.value,
                entry=entry,
            )


def reason_of(error: BaseException) -> str:
    """The message of an error in one line."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
