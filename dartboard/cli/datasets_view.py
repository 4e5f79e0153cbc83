"""Draw the list of data sets so that it fits 80 columns."""

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dartboard.datasets.catalogue import ROOT_VARIABLE, DatasetInfo, unrecognised


def draw(console: Console, found: Sequence[DatasetInfo], root: Path) -> None:
    """A line a data set, then where they were looked for."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("data set", style="bold", no_wrap=True)
    table.add_column("format")
    table.add_column("passages", justify="right")
    table.add_column("queries", justify="right")
    table.add_column("splits", overflow="fold")
    for info in found:
        table.add_row(
            Text(info.name),
            info.format,
            _size(info, info.num_chunks),
            _size(info, info.num_queries),
            Text(", ".join(info.splits)),
        )
    console.print(table)
    console.print(Text(_where(found, root)), soft_wrap=True)


def _size(info: DatasetInfo, count: int) -> str:
    return "?" if info.problem else f"{count:,}"


def _where(found: Sequence[DatasetInfo], root: Path) -> str:
    real = sum(info.type == "real" for info in found)
    if not root.is_dir():
        return f"{root} does not exist: give --data DIR or set {ROOT_VARIABLE} to see what else there is."
    if not real:
        return f"There is no data set in {root}: see dartboard datasets --help for what can be put there."
    others = unrecognised(root)
    ignored = f" Not data sets that dartboard knows: {', '.join(others)}." if others else ""
    return f"{real} in {root}. Queries are those of the first split.{ignored}"
