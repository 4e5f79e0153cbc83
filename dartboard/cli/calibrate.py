"""``dartboard calibrate``: σ from labelled pairs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from dartboard.calibration import Calibration


def calibrate(
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="A data set with known answers; see dartboard datasets.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder of data sets; by default what DARTBOARD_DATA names, else ./data."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the calibration, as JSON.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="How many passages a set has.", min=1, max=20)] = 5,
    copies: Annotated[
        int, typer.Option(help="Near-copies of each passage in the trial with redundancy.", min=1, max=20)
    ] = 5,
    cosine: Annotated[float, typer.Option(help="How close these copies are.", min=0.5, max=0.9999)] = 0.95,
    seed: Annotated[int, typer.Option(help="For the split, the copies and the intervals.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the calibration as JSON.")] = False,
) -> None:
    """Estimate σ from queries whose passages are known.

    σ is the spread of a query around what it means. From pairs of queries and passages it is estimated
    by maximum likelihood, with a 95 % interval; so is the divisor of the rule that takes σ from the
    candidates. Half of the queries fit them. The other half decides, on the corpus as it is and with
    near-copies added, whether either beats the rule as it comes. Few or contradictory pairs keep the rule.

    \b
    Examples:
      dartboard calibrate --dataset hotpotqa_dev200 --data ~/benchmarks
      dartboard calibrate --dataset mine --out calibration.json

    \b
    Then, in Python:
      from dartboard.calibration import Calibration
      retriever = DartboardRetriever(config, model, calibration=Calibration.load("calibration.json"))
    """
    from dartboard import calibration as room
    from dartboard.cli.encoding import load_model
    from dartboard.cli.terminal import messages, results
    from dartboard.datasets import load_dataset, progress_bar, with_redundancy

    model = load_model(messages())
    with progress_bar() as listen:
        loaded = load_dataset(dataset, data, model, progress=listen)
        labelled = room.labelled_by(loaded)
        redundant = room.labelled_by(with_redundancy(loaded, copies=copies, cosine=cosine, seed=seed))
        found = room.calibrate(
            labelled,
            redundant,
            model=model.fingerprint,
            k=k,
            seed=seed,
            progress=lambda done: listen("try on held-out queries", done, len(labelled.queries)),
        )
    if out is not None:
        found.save(out)
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        _draw(results(), found, loaded.name, out)


_CHOICES = {
    "sigma": "σ = {0.sigma.value:.3f} for every query",
    "divisor": "σ = median distance of the candidates / {0.divisor.value:.2f}",
    "default": "the rule as it comes: σ = median distance of the candidates / 4",
}


def _draw(console: "Console", found: "Calibration", name: str, out: Path | None) -> None:
    from rich.table import Table

    fits = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("", "estimate", "95 % interval", "pairs"):
        fits.add_column(title)
    for label, fit in (("σ", found.sigma), ("divisor of the rule", found.divisor)):
        edge = "  (no limit on one side)" if fit.at_edge else ""
        fits.add_row(label, f"{fit.value:.3g}", f"{fit.low:.3g} to {fit.high:.3g}{edge}", f"{fit.pairs}")
    console.print(f"[bold]{name}[/bold]")
    console.print(fits)
    if found.held_out:
        corpora = list(next(iter(found.held_out.values())))
        trial = Table(box=None, pad_edge=False, header_style="bold")
        for title in (f"recall@{found.k} on held-out queries", *corpora):
            trial.add_column(title)
        for kind, by_corpus in found.held_out.items():
            trial.add_row(kind, *(f"{by_corpus[corpus]:.3f}" for corpus in corpora))
        console.print(trial)
    console.print(f"Use [bold]{_CHOICES[found.kind].format(found)}[/bold]: {found.reason}.")
    if out is not None:
        console.print(
            f"Written to {out}. In Python: DartboardRetriever(…, calibration=Calibration.load({str(out)!r}))"
        )
