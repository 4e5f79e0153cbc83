"""``dartboard doctor``: what works here, and how to mend what does not."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from dartboard.cli.common_options import CollectionOption, JsonOption, ModelOption, StoreOption, configured
from dartboard.cli.console import print_json, results, show
from dartboard.cli.doctor_plugins import PluginStatus, check_plugins
from dartboard.errors import install_command
from dartboard.plain_text import clean, counted

if TYPE_CHECKING:
    from dartboard.engine import Configured, Engine

_FOR_DEVELOPERS = frozenset({"site", "bench", "peers", "dev"})

State = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; ``mend`` says what to do where something is wrong or missing."""

    what: str
    state: State
    found: str
    mend: str = ""


def doctor(
    store: StoreOption = None,
    collection: CollectionOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check the installation, the model, the store and the index, and say how to mend what is wrong.

    Plug-ins (names that other packages add) are listed with what is wrong with them. Exit code 0 where
    everything works, 1 where something is wrong. What is merely not installed is a note.
    """
    from rich.text import Text

    plugins = check_plugins()
    settings = configured(store=store, collection=collection, model=model)
    found = list(examine(settings, plugins))
    wrong = any(finding.state == "wrong" for finding in found)
    if as_json:
        facts = {"ok": not wrong, "findings": [asdict(finding) for finding in found]}
        print_json(facts | {"plugins": [asdict(plugin) for plugin in plugins]})
    else:
        for finding in found:
            mark, style = {
                "ok": ("ok   ", "green"),
                "note": ("note ", "yellow"),
                "wrong": ("WRONG", "bold red"),
            }[finding.state]
            line = Text(mark, style=style).append(
                " " + clean(f"{finding.what}: {finding.found}"), style="default"
            )
            results().print(line, soft_wrap=True)
            if finding.mend:
                show(f"      {finding.mend}")
        show("Something is wrong: see above." if wrong else "Everything that is needed works.")
    if wrong:
        raise typer.Exit(1)


def examine(settings: "Configured", plugins: Sequence[PluginStatus] = ()) -> Iterator[Finding]:
    """All findings, in the order in which things are needed."""
    yield from _installation()
    yield from map(_plugin, plugins)
    source = str(settings.file) if settings.file else "no file"
    yield Finding("settings", "ok", f"{source}; dartboard config shows them")
    yield _cache()
    yield _tried(
        "model",
        lambda: _model(settings),
        f"choose another --model, or {install_command(again=True)}",
    )
    yield from _store(settings)


def _installation() -> Iterator[Finding]:
    from dartboard.version import __version__

    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("dartboard", "ok", f"{__version__} on Python {python}")
    for extra, packages in _extras().items():
        missing, there = [], []
        for package in packages:
            try:
                there.append(f"{package} {version(package)}")
            except PackageNotFoundError:
                missing.append(package)
        if missing:
            lacking = f"not installed ({', '.join(missing)})"
            yield Finding(f"extra {extra}", "note", lacking, install_command(extra))
        else:
            yield Finding(f"extra {extra}", "ok", ", ".join(there))


def _extras() -> dict[str, list[str]]:
    """What each extra for users requires here, as the installed package declares it."""
    found: dict[str, list[str]] = {}
    for requirement in requires("dartboard") or ():
        package, _, marker = requirement.partition(";")
        name = re.fullmatch(r"\s*extra == ['\"]([\w-]+)['\"]\s*", marker)
        if name and name[1] not in _FOR_DEVELOPERS:
            found.setdefault(name[1], []).append(re.split(r"[^\w.-]", package)[0])
    return found


def _plugin(status: PluginStatus) -> Finding:
    what = f"plug-in {status.kind} {status.name}"
    package = f"{status.package} {status.version}"
    if status.ok:
        return Finding(what, "ok", f"{package} ({status.target})")
    return Finding(what, "wrong", f"{package}: {status.why_not}", status.mend)


def _cache() -> Finding:
    from dartboard.embeddings.cache import default_cache_path

    folder = default_cache_path().parent
    if _can_write(folder):
        return Finding("cache", "ok", str(folder))
    return Finding(
        "cache", "wrong", f"{folder} cannot be written", "set DARTBOARD_CACHE to a folder that can be written"
    )


def _model(settings: "Configured") -> str:
    from dartboard.embeddings.by_name import model_by_name

    model = model_by_name(settings.settings.model)
    vector = model.encode_query("Does it work?")
    return f"{model.name}, {len(vector)} dimensions, encodes"


def _store(settings: "Configured") -> Iterator[Finding]:
    from dartboard.stores.sqlite.connection import RESTORE
    from dartboard.stores.urls import without_password

    url = settings.settings.store
    shown = without_password(url)
    if "://" not in url:
        path = Path(url)
        if not _can_write(path.parent):
            yield Finding(
                "store",
                "wrong",
                f"{path.parent} cannot be written",
                "choose another --store, or change its rights",
            )
        if not path.exists():
            yield Finding("store", "note", f"{shown} does not exist yet", "dartboard index PATH makes it")
            return
        if path.is_file() and (why := _no_appending(path)):
            yield Finding(
                "store", "wrong", f"{shown} can be read, not written: {why}", "change its rights, or copy it"
            )
    mend = "check the address, the server and your rights" if "://" in url else RESTORE
    yield _tried("store", lambda: _opened(settings, shown), mend)
    if "://" in url:
        yield from _rights(url, shown)
    else:
        yield _tried("contents", lambda: _contents(url), mend)


def _no_appending(path: Path) -> str:
    """Why a file cannot be written; it is opened for that, and not changed."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _rights(url: str, shown: str) -> Iterator[Finding]:
    """Whether a server would let us write, as far as it can be asked without writing."""
    from dartboard.errors import DartboardError
    from dartboard.stores import open_store

    try:
        with open_store(url, read_only=True) as store:
            ask = getattr(store, "why_not_writable", None)
            why = ask() if ask else None
    except (DartboardError, OSError):
        return  # told before
    if why is None:
        yield Finding("rights", "note", f"whether {shown} can be written is found out by writing only")
    elif why:
        yield Finding("rights", "wrong", f"{shown} can be read, not written: {why}", "ask for the rights")
    else:
        yield Finding("rights", "ok", "the role may read and write")


def _contents(url: str) -> str:
    """All of a file, as SQLite checks it."""
    from dartboard.stores.sqlite import SqliteStore

    with SqliteStore(url, read_only=True) as store:
        return f"all of the file is sound, {counted(store.check(), 'chunk')} in all collections"


def _opened(settings: "Configured", shown: str) -> str:
    from dartboard.engine import Engine

    name = settings.settings.collection
    named = (settings.settings.model, *settings.trusted)
    with Engine.open(settings.settings.store, read_only=True, collection=name, trust_model=named) as engine:
        if not engine.exists:
            return f"{shown} opens; no collection {name!r} yet: dartboard index PATH makes it"
        fits = _fits(engine)
        found = engine.stats()
        return f"{shown} opens; collection {name!r} has {counted(found.records, 'chunk')}; {fits}"


def _fits(engine: "Engine") -> str:
    """Whether model and retriever belong to the collection; one that only a program can make is no damage."""
    from dartboard.errors import ConfigError

    engine.model  # noqa: B018 - an error of its own
    try:
        retriever = engine.retriever
    except ConfigError as error:
        return f"its model fits; to search, {' '.join(str(error).split())}"
    check = getattr(retriever, "check", None)
    if check is not None:
        check(engine.collection)
    return "its model fits"


def _tried(what: str, attempt: Callable[[], str], mend: str) -> Finding:
    from dartboard.errors import DartboardError, UntrustedModelError

    try:
        return Finding(what, "ok", attempt())
    except UntrustedModelError as error:  # nothing is damaged, and it says itself how to go on
        return Finding(what, "wrong", " ".join(str(error).split()))
    except (DartboardError, OSError) as error:
        return Finding(what, "wrong", " ".join(str(error).split()), mend)


def _can_write(folder: Path) -> bool:
    """Whether files can be made in the folder, or in the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)
