"""``dartboard datasets``: what there is to measure retrieval with."""

import json
from pathlib import Path
from typing import Annotated

import typer


def datasets(
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of data sets; by default what DARTBOARD_DATA names, else ./data."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, not a table.")] = False,
) -> None:
    """List the data sets that are there, with their sizes.

    Three synthetic ones are always there. All others lie in one folder: BEIR folders, the official files
    of MS MARCO, RGB, HotpotQA and MuSiQue, and retrieval_dataset.yaml from mining. In Python, load_dataset
    takes the names shown here, and fetches well-known ones that are missing.

    \b
    Examples:
      dartboard datasets
      dartboard datasets --data ~/benchmarks
      dartboard datasets --json | python -m json.tool

    \b
    In Python:
      from dartboard.datasets import load_dataset
      dataset = load_dataset("scifact")          # embedded once, then cached

    \b
    Environment:
      DARTBOARD_DATA    folder of data sets, instead of ./data
    """
    # What only a run needs is imported here: --help stays quick.
    from dartboard.datasets.catalogue import data_root, list_datasets

    root = data_root(data)
    if data is not None and not root.is_dir():
        raise typer.BadParameter(f"--data {root} is no folder: give the one that holds the data sets")
    found = list_datasets(root)
    if as_json:
        print(json.dumps({"data": str(root), "datasets": [info.as_dict() for info in found]}, indent=2))
        return
    from dartboard.cli.datasets_view import draw
    from dartboard.cli.terminal import results, warn

    draw(results(), found, root)
    for info in found:
        if info.problem:
            warn(info.problem)
