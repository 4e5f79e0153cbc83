"""``dartboard datasets``: what there is to measure retrieval with."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import DataOption, JsonOption
from dartboard.cli.console import print_json, results, show, warn
from dartboard.plain_text import clean

if TYPE_CHECKING:
    from dartboard.datasets.catalogue import DatasetInfo


app = typer.Typer(invoke_without_command=True)
"""``dartboard datasets`` lists; ``dartboard datasets make`` makes one."""


@app.callback()
def datasets(
    context: typer.Context,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the data sets that are there, with their sizes.

    Three synthetic ones are always there. All others lie in one folder: BEIR folders, the official files
    of MS MARCO and RGB, and retrieval_dataset.yaml from mining. In Python, load_dataset takes the names
    shown here, and fetches well-known ones that are missing.

    \b
    Examples:
      dartboard datasets
      dartboard datasets --data ~/benchmarks
      dartboard datasets --json | python -m json.tool
      dartboard datasets make synthetic_clustered --out clustered

    \b
    In Python:
      from dartboard.datasets import load_dataset
      dataset = load_dataset("scifact")          # embedded once, then cached

    \b
    Environment:
      DARTBOARD_DATA    folder of data sets, instead of ./data
    """
    if context.invoked_subcommand is not None:
        return
    # What only a run needs is imported here: --help stays quick.
    from dartboard.datasets.catalogue import data_root, list_datasets

    root = data_root(data)
    if data is not None and not root.is_dir():
        raise typer.BadParameter(f"--data {root} is no folder: give the one that holds the data sets")
    found = list_datasets(root)
    if as_json:
        print_json({"data": str(root), "datasets": [info.as_dict() for info in found]})
        return
    _draw(found, root)
    for info in found:
        if info.problem:
            warn(info.problem)


@app.command()
def make(
    name: Annotated[
        str, typer.Argument(help="synthetic_clustered, synthetic_query_focused or synthetic_adversarial.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The new folder, in BEIR's layout.")],
    seed: Annotated[int, typer.Option(help="The same seed gives the same data set.")] = 42,
) -> None:
    """Make a synthetic data set as a BEIR folder, with its vectors beside the texts.

    \b
    Examples:
      dartboard datasets make synthetic_query_focused --out focused
      dartboard datasets make synthetic_adversarial --out adversarial --seed 7
    """
    from dartboard.datasets import make_adversarial, make_clustered, make_query_focused, write_beir
    from dartboard.datasets.beir import as_text, write_vectors
    from dartboard.datasets.synthetic import SyntheticDatasetConfig

    config = SyntheticDatasetConfig(random_seed=seed)
    makers = {
        "synthetic_adversarial": lambda: make_adversarial(seed=seed),
        "synthetic_clustered": lambda: make_clustered(config),
        "synthetic_query_focused": lambda: make_query_focused(config),
    }
    if name not in makers:
        raise typer.BadParameter(f"unknown data set {name!r}: choose one of {', '.join(makers)}")
    if out.exists() and any(out.iterdir()):
        raise typer.BadParameter(f"--out {out} is not empty: give a new folder")
    made = makers[name]()
    write_beir(as_text(made), out)
    write_vectors(made, out)
    show(f"{len(made.chunks)} passages, {len(made.queries)} queries: {out}")


def _draw(found: "Sequence[DatasetInfo]", root: Path) -> None:
    """A line a data set, in 80 columns, then where they were looked for."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("data set", style="bold", no_wrap=True)
    table.add_column("format")
    table.add_column("passages", justify="right")
    table.add_column("queries", justify="right")
    table.add_column("splits", overflow="fold")
    for info in found:
        table.add_row(
            clean(info.name),
            info.format,
            _size(info, info.num_chunks),
            _size(info, info.num_queries),
            clean(", ".join(info.splits)),
        )
    results().print(table)
    show(_where(found, root))


def _size(info: "DatasetInfo", count: int) -> str:
    return "?" if info.problem else f"{count:,}"


def _where(found: "Sequence[DatasetInfo]", root: Path) -> str:
    from dartboard.datasets.catalogue import ROOT_VARIABLE, unrecognised

    real = sum(info.type == "real" for info in found)
    if not root.is_dir():
        return f"{root} does not exist: give --data DIR or set {ROOT_VARIABLE} to see what else there is."
    if not real:
        return f"There is no data set in {root}: see dartboard datasets --help for what can be put there."
    others = unrecognised(root)
    ignored = f" Not data sets that dartboard knows: {', '.join(others)}." if others else ""
    return f"{real} in {root}. Queries are those of the first split.{ignored}"
