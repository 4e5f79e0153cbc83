"""``dartboard keys``: who may call the service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dartboard.cli.common_options import JsonOption, Panels
from dartboard.cli.console import print_json, results, say, show
from dartboard.plain_text import clean

if TYPE_CHECKING:
    from dartboard.api.keys import Key, Scope

keys = typer.Typer(name="keys", rich_markup_mode=None)

FileOption = Annotated[
    Path | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        envvar="DARTBOARD_KEYS",
        show_envvar=False,
        help="The key file; by default what DARTBOARD_KEYS names, else keys.json in the user's "
        "configuration folder.",
    ),
]


@keys.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Make, list and revoke the keys of the service.

    Each key has a secret, which is shown once and stored as a hash. A running service sees changes at once.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@keys.command(cls=Panels, short_help="Make a key and show its secret, once.")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who or what will use it.")],
    scope: Annotated[
        Literal["read", "write"],
        typer.Option(help="read: search and evaluate; write: change collections as well."),
    ] = "read",
    rate: Annotated[
        float | None,
        typer.Option(metavar="N", help="Requests a second; by default what the service allows."),
    ] = None,
    file: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a key and show its secret, once.

    \b
    Examples:
      dartboard keys create search-page
      dartboard keys create indexer --scope write --rate 5
      dartboard keys create ci --json --keys keys.json
    """
    from dartboard.api.keys import Keys

    path = _path(file)
    scopes: list[Scope] = ["read"] if scope == "read" else ["read", "write"]
    opened = Keys.open(path, create=True)
    secret = opened.create(name, scopes, rate=rate)
    key = opened.find(secret)
    if key is None:  # pragma: no cover - it was written a moment ago
        raise typer.Exit(1)
    if as_json:
        print_json({**_facts(key), "secret": secret, "file": str(path)})
        return
    print(secret)
    say(f"key {key.id} ({key.name}; {_scopes(key)}) is in {path}.", "dim")
    say("The line above is its secret. It is not stored and cannot be shown again.", "dim")
    say(f"Start the service with: dartboard serve --keys {path}")


@keys.command("list", cls=Panels, short_help="List keys, without their secrets.")
def list_keys(file: FileOption = None, as_json: JsonOption = False) -> None:
    """List keys, without their secrets.

    \b
    Examples:
      dartboard keys list
      dartboard keys list --json
    """
    from dartboard.api.keys import Keys

    found = Keys.open(_path(file)).list()
    if as_json:
        print_json([_facts(key) for key in found])
        return
    if not found:
        show("There are no keys: make one with dartboard keys create NAME")
        return
    from rich.table import Table

    table = Table("id", "name", "scopes", "limit", "created", "state", box=None, pad_edge=False)
    for key in found:
        state = f"revoked {key.revoked[:10]}" if key.revoked else "in force"
        row = (key.id, key.name, _scopes(key), _limit(key), key.created[:10], state)
        table.add_row(*map(clean, row), style="dim" if key.revoked else None)
    results().print(table)


@keys.command(cls=Panels, short_help="Let a key in no more.")
def revoke(
    key_id: Annotated[
        str, typer.Argument(metavar="ID", help="The key's id, as dartboard keys list shows it.")
    ],
    file: FileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a key in no more; a running service refuses it from its next request.

    \b
    Example:
      dartboard keys revoke 3f9c21ab
    """
    from dartboard.api.keys import Keys

    key = Keys.open(_path(file)).revoke(key_id)
    if as_json:
        print_json(_facts(key))
    else:
        show(f"key {key.id} ({key.name}) is revoked")


def _path(file: Path | None) -> Path:
    if file is not None:
        return file
    from platformdirs import user_config_path

    return user_config_path("dartboard") / "keys.json"


def _facts(key: "Key") -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(key), "scopes": sorted(key.scopes)}


def _scopes(key: "Key") -> str:
    return "read + write" if "write" in key.scopes else "read"


def _limit(key: "Key") -> str:
    return "the service's" if key.rate is None else f"{key.rate:g}/s"
