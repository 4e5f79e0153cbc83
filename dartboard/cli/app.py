"""The command ``dartboard``: its help, its version, and how it fails.

Exit codes: 0 done, 1 failed, 2 asked for wrongly, 130 interrupted. Whatever goes wrong on purpose is one line
on stderr, never a traceback.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from dartboard.cli.ask import ask
from dartboard.cli.calibrate import calibrate
from dartboard.cli.common_options import Panels
from dartboard.cli.console import forward_warnings
from dartboard.cli.context import context
from dartboard.cli.datasets import app as datasets
from dartboard.cli.demo import demo
from dartboard.cli.doctor import doctor
from dartboard.cli.duplicates import duplicates
from dartboard.cli.eval import evaluate
from dartboard.cli.index import index
from dartboard.cli.keys import keys
from dartboard.cli.manage import config, delete, restore, snapshot, stats
from dartboard.cli.mcp import mcp
from dartboard.cli.mine import mine
from dartboard.cli.search import search
from dartboard.cli.serve import serve
from dartboard.errors import ConfigError, DartboardError, InvalidInputError
from dartboard.plain_text import clean
from dartboard.version import __version__

FAILED, MISUSED, INTERRUPTED = 1, 2, 130

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""The base of all complaints about arguments, wherever this version of typer keeps it."""

app = typer.Typer(
    name="dartboard",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100},
)
app.command(cls=Panels, short_help="Compare nearest neighbours, MMR and Dartboard on a question.")(demo)
app.command(cls=Panels, short_help="Index files and folders.")(index)
app.command(cls=Panels, short_help="Ask an index a question.")(search)
app.command(cls=Panels, short_help="Print what a language model should read for a question.")(context)
app.command(cls=Panels, short_help="Get an answer with its sources from a language model.")(ask)
app.command(cls=Panels, short_help="Show what an index holds.")(stats)
app.command(cls=Panels, short_help="Remove chunks from an index.")(delete)
app.command(cls=Panels, short_help="Find duplicates, what causes them, and delete them.")(duplicates)
app.command(cls=Panels, short_help="Write a collection to one file.")(snapshot)
app.command(cls=Panels, short_help="Make a collection from a snapshot.")(restore)
app.command(cls=Panels, short_help="Check that everything works, and say how to mend it.")(doctor)
app.command(cls=Panels, short_help="Show every setting and where it comes from.")(config)
app.command(cls=Panels, short_help="Estimate sigma from queries whose passages are known.")(calibrate)
app.add_typer(datasets, name="datasets", short_help="List the data sets that are there; make synthetic ones.")
app.command("eval", cls=Panels, short_help="Compare systems on data sets whose answers are known.")(evaluate)
app.command(cls=Panels, short_help="Serve an index over HTTP, with a playground.")(serve)
app.command(cls=Panels, short_help="Serve an index to language models, as tools (MCP).")(mcp)
app.add_typer(mine, short_help="Make a data set with proved labels from questions and a corpus.")
app.add_typer(keys, short_help="Make, list and revoke the keys of the service.")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dartboard {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def dartboard(
    given: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Pick the passages that TOGETHER say most about a question.

    A nearest-neighbour search returns the passages closest to a question one by one, and in a real
    knowledge base these are often one paragraph in five wordings. dartboard picks a set: each passage
    is chosen for what it adds to those before it.

    \b
    Start here:
      dartboard demo              see the difference on a small corpus (no set-up)
      dartboard index docs/       index your own documents …
      dartboard search "…"        … and ask them
      dartboard context "…"       the text for a prompt, within a token budget
      dartboard ask "…"           an answer with its sources (needs a model)
      dartboard serve             the same over HTTP, with a page that shows why
      dartboard doctor            check that everything works

    \b
    In Python, with vectors from any model:
      from dartboard import select
      picks = select(embeddings, query, k=5)      # (n, d) and (d,)
      picks.indices
    """
    if given.invoked_subcommand is None:
        typer.echo(given.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``None`` takes the arguments of the process."""
    try:
        with forward_warnings():
            code = app(arguments, prog_name="dartboard", standalone_mode=False)
        sys.stdout.flush()
    except UsageError as error:
        return _complain(_usage_message(error), MISUSED)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (ConfigError, InvalidInputError) as error:
        return _complain(str(error), MISUSED)
    except (DartboardError, OSError) as error:
        return _complain(str(error), FAILED)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _usage_message(error: Exception) -> str:
    """What was wrong and where to read on, in one line."""
    message: str = error.format_message() if hasattr(error, "format_message") else str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "dartboard"
    return f"{message.removeprefix('Invalid value: ').rstrip('.')} (see {command} --help)"


def _complain(message: str, code: int) -> int:
    print(f"dartboard: {clean(message)}", file=sys.stderr)
    return code
