"""``dartboard stats``, ``delete``, ``snapshot``, ``restore`` and ``config``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, get_args

import typer

from dartboard.cli.common_options import CollectionOption, JsonOption, StoreOption, configured, opened
from dartboard.cli.console import print_json, results, show, warn
from dartboard.plain_text import clean, counted


def stats(
    store: StoreOption = None, collection: CollectionOption = None, as_json: JsonOption = False
) -> None:
    """Show what an index holds: chunks by kind of document, bytes, model, settings.

    \b
    Examples:
      dartboard stats
      dartboard stats --store postgresql://me@localhost/docs --json
    """
    from dartboard.ingest.documents import Kind
    from dartboard.stores.filters import Equal

    with opened(configured(store=store, collection=collection)) as engine:
        found, manifest = engine.stats(), engine.collection.manifest
        names, calibration = engine.store.collections(), engine.calibration
        kinds = {kind: engine.collection.count(Equal("kind", kind)) for kind in get_args(Kind)}
    kinds = {kind: count for kind, count in kinds.items() if count}
    settings = dict(manifest.settings)
    if as_json:
        facts = asdict(found) | {"model": manifest.model_name, "dimension": manifest.dimension}
        print_json(facts | {"settings": settings, "chunks_by_kind": kinds, "collections": names})
        return
    show(clean(f"{found.name}: {counted(found.records, 'chunk')}, {_size(found.bytes)}"), "bold")
    details = {name: value for name, value in found.details.items() if "bytes" not in name}
    lines = {"model": f"{manifest.model_name}, {manifest.dimension} dimensions", "chunks": kinds}
    lines |= {name.replace("_", " "): value for name, value in (settings | details).items()}
    lines["calibration"] = "" if calibration is None else calibration.summary()
    lines["other collections"] = ", ".join(name for name in names if name != found.name)
    for name, value in lines.items():
        if text := _plain(value):
            show(clean(f"{name}: {text}"))


def delete(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]…", help="Ids of chunks.")] = None,
    where: Annotated[
        str | None,
        typer.Option("--where", "--filter", "-f", metavar="FILTER", help="All chunks whose metadata match."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many would go, and leave them.")
    ] = False,
    store: StoreOption = None,
    collection: CollectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove chunks from an index, by id or by filter.

    \b
    Examples:
      dartboard delete 'notes/old.md#3f0c9a7d51e2b846'          (search --json shows ids)
      dartboard delete --where 'source = "notes/old.md"' --dry-run
    """
    from dartboard.errors import InvalidInputError
    from dartboard.stores import parse_filter

    if bool(ids) == (where is not None):
        raise typer.BadParameter("give ids or --where, one of the two")
    condition = parse_filter(where) if where is not None else None
    with opened(configured(store=store, collection=collection), read_only=dry_run) as engine:
        known = {record.id for record in engine.collection.get(ids or [])}
        if missing := [id for id in ids or [] if id not in known]:
            raise InvalidInputError(
                f"there is no chunk {missing[0]!r} in the collection: search --json shows ids; whole "
                f"documents go by --where 'source = …'"
            )
        if not dry_run:
            gone = engine.delete(ids or None, where=condition)
        elif (checked := engine.condition(condition)) is not None:
            gone = engine.collection.count(checked)
        else:
            gone = len(known)
    if as_json:
        print_json({"deleted": gone, "dry_run": dry_run})
    else:
        show(f"{counted(gone, 'chunk')} {'would go' if dry_run else 'deleted'}.")


def snapshot(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")],
    force: Annotated[bool, typer.Option("--force", help="Replace a file that exists.")] = False,
    store: StoreOption = None,
    collection: CollectionOption = None,
) -> None:
    """Write a collection to one file that any store can restore.

    \b
    Example: from a file on this machine to PostgreSQL
      dartboard snapshot docs.snapshot
      dartboard restore docs.snapshot --store postgresql://me@localhost/docs
    """
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} exists already: choose another name, or --force to replace it")
    with opened(configured(store=store, collection=collection)) as engine:
        engine.snapshot(path)
        count = engine.collection.count()
    show(f"{counted(count, 'chunk')} written to {path} ({_size(path.stat().st_size)}).")


def restore(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A snapshot.")],
    store: StoreOption = None,
    collection: CollectionOption = None,
) -> None:
    """Make a collection from a snapshot, in any store.

    The collection gets the name it had, or the one that --collection gives. One of that name is left alone.
    A model that the snapshot names is not loaded. Your own snapshots keep what you confirmed for their index;
    for those of others, --trust-model has to be given with the first search.
    """
    from dartboard.engine.trust import confirm, stored_names
    from dartboard.errors import UntrustedModelError
    from dartboard.stores.snapshot_file import read_snapshot_file

    read_snapshot_file(path)  # before a store is made for nothing
    found = configured(store=store, collection=collection)
    with opened(found, read_only=False, create=True) as engine:
        made = engine.restore(path, found.chosen("collection"))
        show(
            f"{counted(made.count(), 'chunk')} restored into collection {made.name!r} of {engine.store.url}."
        )
        for setting, stored in stored_names(made.manifest.settings).items():
            try:
                confirm(engine.store, setting, stored, collection=made.name, trust=found.trusted)
            except UntrustedModelError as error:
                warn(str(error))


def config(
    trust: Annotated[
        bool,
        typer.Option("--trust", help="Confirm the dartboard.toml of this folder, until it changes."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show every setting, its value and where it comes from.

    Flags win over DARTBOARD_* variables, and these over a TOML file: the one that DARTBOARD_CONFIG names,
    else dartboard.toml in this folder, else the one in your configuration folder.

    A dartboard.toml in this folder may be somebody else's. Until you confirm it with --trust, it is refused
    where it names a model, a plug-in or a server: things that get your questions, or run on your machine.

    \b
    A dartboard.toml:
      store = "postgresql://me@localhost/docs"
      retriever = "hybrid"
      k = 8
    """
    from rich.table import Table

    from dartboard.engine import load_settings
    from dartboard.engine.settings import MEANING
    from dartboard.engine.trust import trust_file
    from dartboard.stores.urls import without_password

    found = load_settings(confirmed=False)
    if trust and found.file is None:
        raise typer.BadParameter("there is no dartboard.toml in this folder")
    if trust and found.file is not None and found.unconfirmed:
        trust_file(found.file)
        found = load_settings(confirmed=False)
    for name, what in found.doubts().items():
        warn(f"{found.file} sets {name}, which is not used until you confirm it (--trust): {what}")
    values = asdict(found.settings) | {"store": without_password(found.settings.store)}
    if as_json:
        rows = {name: {"value": value, "source": found.sources[name]} for name, value in values.items()}
        print_json({"file": str(found.file) if found.file else None, "settings": rows})
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("setting", "value", "from", "meaning"):
        table.add_column(title, overflow="fold")
    for name, value in values.items():
        table.add_row(name, clean(value), clean(found.sources[name]), MEANING[name])
    results().print(table)


def _size(count: int) -> str:
    power = min(3, max(0, (len(str(count)) - 1) // 3))
    unit = ("B", "kB", "MB", "GB")[power]
    return f"{count / 1000**power:.{min(power, 1)}f} {unit}"


def _plain(value: object) -> str:
    """A setting in words; nothing for what is empty."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
