"""The command line's reference, made from the very objects that print ``--help``."""

import re
from typing import Any

PATH = "reference/command-line.md"

_START = """\
# Command line

On this page you look up every command and option, as `--help` shows them.

Exit codes: 0 success, 1 failure, 2 wrong usage or input, 130 interrupted. An expected error is one
line on stderr. Shared settings come from flags, then variables, then a file: see [Settings](settings.md).
"""


def pages() -> dict[str, str]:
    """The page: path in the documentation, Markdown."""
    import typer

    from dartboard.cli.app import app

    root = typer.main.get_command(app)
    parts = [_START, _overview(root, "dartboard")]
    parts += _described(root, "dartboard", None)
    return {PATH: "\n".join(parts)}


def _overview(group: Any, path: str) -> str:
    lines = ["| command | |", "|---|---|"]
    for name, command in group.commands.items():
        lines.append(
            f"| [`{path} {name}`](#{_anchor(f'{path} {name}')}) | {command.get_short_help_str(200)} |"
        )
    return "\n".join(lines) + "\n"


def _described(command: Any, path: str, parent: Any) -> list[str]:
    """A command and those below it."""
    context = command.context_class(command, info_name=path.rpartition(" ")[2], parent=parent)
    below = getattr(command, "commands", {})
    level = "##" if path.count(" ") < 2 else "###"
    parts = [f"{level} {path} {{ #{_anchor(path)} }}\n"]
    parts += [f"```text\n{path} {' '.join(command.collect_usage_pieces(context))}\n```\n"]
    parts += [help_text(command.help or "")]
    if below and parent is not None:
        parts += [_overview(command, path)]
    if table := _table(command, context):
        parts += [table]
    for name, one in below.items():
        parts += _described(one, f"{path} {name}", context)
    return parts


def _table(command: Any, context: Any) -> str:
    """Arguments and options, as the help lists them."""
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    rows = [(_one_line(names), _one_line(said)) for names, said in filter(None, records)]
    rows = [row for row in rows if not row[0].startswith("--help")]
    lines = [f"| `{names}` | {_escaped(said)} |" for names, said in rows]
    return "\n".join(["| argument or option | |", "|---|---|", *lines]) + "\n" if lines else ""


def help_text(text: str) -> str:
    r"""A command's help as Markdown: paragraphs, and what stands after ``\b`` as it is written."""
    paragraphs = re.split(r"\n\s*\n", text.strip("\n").replace("\f", ""))
    return "\n\n".join(map(_paragraph, paragraphs)) + "\n"


def _paragraph(text: str) -> str:
    if "\b" not in text:
        return _escaped(_one_line(text))
    first, *rest = text.replace("\b\n", "").replace("\b", "").strip("\n").split("\n")
    if first.endswith(":") and rest:
        return f"{_escaped(first)}\n\n```text\n" + "\n".join(_dedented(rest)) + "\n```"
    return "```text\n" + "\n".join([first, *rest]) + "\n```"


def _dedented(lines: list[str]) -> list[str]:
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _escaped(text: str) -> str:
    return re.sub(r"([|<>*\[\]])", r"\\\1", text)


def _anchor(path: str) -> str:
    return path.replace(" ", "-")
