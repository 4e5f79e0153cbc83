"""The Python reference: one page a room, each name rendered from its docstring by mkdocstrings."""

from itertools import groupby

from tools.pages.rooms import Room, exported, homes, rooms, summary

INDEX = "reference/python/index.md"


def pages() -> dict[str, str]:
    """Every page of the Python reference: path in the documentation, Markdown."""
    return {INDEX: _index(), **{room.page: _room(room) for room in rooms()}}


def navigation() -> list[dict[str, str]]:
    """The pages in order, with their titles."""
    return [{"Overview": INDEX}, *({room.title: room.page} for room in rooms())]


def _index() -> str:
    lines = [
        "# Python",
        "",
        "On these pages you look up every public name: parameters, returns, errors, examples.",
        "`import dartboard` loads only NumPy and has the names that a first script needs; the modules below",
        "have the rest.",
        "",
        "## Names in `dartboard`",
        "",
        "| `from dartboard import` | lives in |",
        "|---|---|",
    ]
    for name in exported():
        lines.append(f"| {_link(name)} | {_where(name)} |")
    lines += ["", "## Modules", "", "| module | what it does |", "|---|---|"]
    for room in rooms():
        lines.append(f"| [`dartboard.{room.name}`]({room.name}.md) | {_cell(summary(room.name))} |")
    return "\n".join(lines) + "\n"


def _link(name: str) -> str:
    place = homes().get(name)
    return f"[`{name}`][{place}]" if place else f"`{name}`"


def _where(name: str) -> str:
    place = homes().get(name)
    return f"`{place.rpartition('.')[0]}`" if place else "`dartboard`: the version, as text"


def _room(room: Room) -> str:
    """The room's docstring, then its names."""
    lines = [f"# {room.title}", ""]
    lines += _directive(f"dartboard.{room.name}", level=2, heading=False)
    for module, names in groupby(room.names, key=lambda name: name.rpartition(".")[0]):
        level = 2
        if module != room.name:
            level = 3
            lines += [
                f"## `dartboard.{module}`",
                "",
                *_directive(f"dartboard.{module}", level=3, heading=False),
            ]
        for name in names:
            lines += _directive(f"dartboard.{name}", level=level, heading=True)
    return "\n".join(lines) + "\n"


def _directive(name: str, *, level: int, heading: bool) -> list[str]:
    options = [f"      heading_level: {level}", f"      show_root_heading: {str(heading).lower()}"]
    if not heading:
        options += ["      members: false", "      show_root_toc_entry: false"]
    elif name.startswith("dartboard.integrations."):
        options += ["      inherited_members: true"]  # components share the fields of their options
    return [f"::: {name}", "    options:", *options, ""]


def _cell(text: str) -> str:
    from tools.pages.docstrings import plain_roles

    return plain_roles(text).replace("|", "\\|")
