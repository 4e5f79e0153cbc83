"""``dartboard mine validate`` and ``compare``: what a mined data set is worth."""

import json
from pathlib import Path

import typer

from dartboard.cli.common_options import JsonOption
from dartboard.cli.mine_options import FileArgument


def validate(file: FileArgument, as_json: JsonOption = False) -> None:
    """Check a mined data set, and list all that is wrong with it, by line.

    Its schema, what occurs twice, empty texts, whether the evidence really stands in its context, whether
    kernels are among the positives, whether the judge's error rates are there. Exit code 1 on errors;
    warnings are worth a look and stop nothing.

    \b
    Examples:
      dartboard mine validate mined
      dartboard mine validate mined/retrieval_dataset.yaml --json
    """
    from dartboard.cli.console import results
    from dartboard.cli.mine_view import draw_problems
    from dartboard.mining.validation import validate as check

    path = _file(file)
    problems = check(path)
    errors = sum(problem.level == "error" for problem in problems)
    if as_json:
        from dataclasses import asdict

        listed = [asdict(problem) for problem in problems]
        print(json.dumps({"file": str(path), "errors": errors, "problems": listed}, indent=2))
    else:
        draw_problems(results(), path, problems)
    if errors:
        raise typer.Exit(1)


def compare(file: FileArgument, as_json: JsonOption = False) -> None:
    """How far the sources of kernels agree: expansion, imports, an agent.

    Jaccard is the size of what two kernels share over the size of what either has, averaged over the
    questions for which both found one.

    \b
    Examples:
      dartboard mine compare mined
      dartboard mine compare mined --json
    """
    from dartboard.cli.console import results
    from dartboard.cli.mine_view import draw_comparisons
    from dartboard.mining.kernels.comparison import compare_sources

    found = compare_sources(_file(file))
    if as_json:
        print(json.dumps(found, indent=2))
    else:
        draw_comparisons(results(), found)


def _file(path: Path) -> Path:
    from dartboard.mining.dataset import FILE

    return path / FILE if path.is_dir() else path
