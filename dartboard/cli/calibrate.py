"""``dartboard calibrate``: σ from labelled pairs or facets."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import CollectionOption, DataOption, configured, opened
from dartboard.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from dartboard.calibration import Calibration, Estimate, Temperature
    from dartboard.embeddings import EmbeddingModel
    from dartboard.retrievers.alpha_fit import AlphaFit
    from dartboard.types import Dataset


class Variant(StrEnum):
    """What is calibrated: σ alone, or also the temperature of a pair scorer's scores."""

    COSINE = "cosine"
    HYBRID = "hybrid"


class Measure(StrEnum):
    """What the trial on held-out queries counts."""

    RECALL = "recall"
    FACETS = "facets"


def calibrate(
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="A data set by name (see dartboard datasets) or path.")
    ],
    data: DataOption = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to write the calibration, as JSON.")
    ] = None,
    k: Annotated[int, typer.Option("--k", "-k", help="How many passages a set has.", min=1, max=20)] = 5,
    measure: Annotated[
        Measure | None,
        typer.Option(
            help="What to count among the k picks: recall of the known passages, or facets found. By "
            "default facets where several passages cover the same one, else recall.",
            show_default=False,
        ),
    ] = None,
    copies: Annotated[
        int,
        typer.Option(
            help="Near-copies of each passage in the trial with redundancy (recall only).", min=1, max=20
        ),
    ] = 5,
    cosine: Annotated[float, typer.Option(help="How close these copies are.", min=0.5, max=0.9999)] = 0.95,
    variant: Annotated[
        Variant,
        typer.Option(help="hybrid also fits the temperature of the pair scores, which takes longer."),
    ] = Variant.COSINE,
    alpha: Annotated[
        bool, typer.Option("--alpha", help="Also fit the share of the embeddings in a hybrid with BM25.")
    ] = False,
    store: Annotated[
        str | None,
        typer.Option("--store", "-s", metavar="URL", help="Keep what is found with the index at URL."),
    ] = None,
    collection: CollectionOption = None,
    seed: Annotated[int, typer.Option(help="For the split, the copies and the intervals.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the calibration as JSON.")] = False,
) -> None:
    """Estimate σ from queries whose passages are known.

    σ is the spread of a query around what it means. From pairs of queries and passages it is estimated
    by maximum likelihood, with a 95 % interval; so is the divisor of the rule that takes σ from the
    candidates. Half of the queries fit them. The other half decides, on the corpus as it is and with
    near-copies added, whether either beats the rule as it comes by more than chance (a permutation test
    over queries, p < .05). Few or contradictory pairs keep the rule.

    Do you want k passages that cover many aspects? Then judge facets: which passages say the same thing, in
    qrels/subtopics.txt of a BEIR folder (query, facet, passage, grade). The trial then counts the facets
    found among k picks, on the corpus as it is, and the divisor is the one of a small grid that finds most
    of them on the first half. --measure says which of the two is counted. Do you want all passages that
    answer a query? Then use recall.

    Where texts are known, near-duplicates are removed before every trial, as in a search.

    With --variant hybrid, the temperature of the pair scores (late interaction over the default model) is
    fitted and tried out in the same way: about a second a query. With --alpha, so is α of the hybrid
    retriever; it is kept only where it beats .7 on held-out queries.

    With --store, an index keeps all that and uses it from then on: σ is what "auto" means there.

    \b
    Examples:
      dartboard calibrate --dataset hotpotqa_dev200 --data ~/benchmarks
      dartboard calibrate --dataset mine --out calibration.json
      dartboard calibrate --dataset mine --measure facets -k 10
      dartboard calibrate --dataset mine --alpha --store index.dartboard
      dartboard calibrate --dataset mine --variant hybrid

    \b
    Then, in Python:
      from dartboard.calibration import Calibration
      retriever = DartboardRetriever(config, model, calibration=Calibration.load("calibration.json"))
    """
    from dartboard import calibration as room
    from dartboard.cli.common_options import load_model
    from dartboard.cli.console import messages, results
    from dartboard.datasets import load_dataset, progress_bar, with_redundancy
    from dartboard.embeddings import LateInteraction, default_model
    from dartboard.retrievers.hybrid import ALPHA
    from dartboard.stores.urls import without_password

    if store is not None:  # told before the work begins
        with opened(configured(store=store, collection=collection)) as engine:
            engine.collection  # noqa: B018 - it has to be there
    model = load_model(messages())
    with progress_bar() as listen:
        loaded = load_dataset(dataset, data, model, progress=listen, paths=True)
        labelled = room.labelled_by(loaded)
        counted = room.measure_for(labelled, None if measure is None else measure.value)
        held = len(loaded.queries) - len(loaded.queries) // 2
        steps = 2 * held if counted == "recall" else len(loaded.queries) + held
        copied = None
        if counted == "recall" or variant is Variant.HYBRID:
            copied = with_redundancy(loaded, copies=copies, cosine=cosine, seed=seed)
        found = room.calibrate(
            labelled,
            room.labelled_by(copied) if copied is not None and counted == "recall" else None,
            measure=counted,
            model=model.fingerprint,
            k=k,
            seed=seed,
            progress=lambda done: listen("try on held-out queries", done, steps),
        )
        if variant is Variant.HYBRID:
            _check_texts(loaded, "--variant hybrid")
            total = len(loaded.queries) + (len(loaded.queries) + 1) // 2
            temperature = room.calibrate_temperature(
                loaded,
                LateInteraction(default_model(), cache_bytes=_TOKEN_CACHE),
                copied,
                k=k,
                seed=seed,
                progress=lambda done: listen("score pairs of texts", done, total),
            )
            found = replace(found, temperature=temperature)
        fit = None
        if alpha:
            _check_texts(loaded, "--alpha")
            fit = fit_alpha_on(
                loaded,
                model,
                seed=seed,
                progress=lambda done, total: listen("weigh embeddings and words", done, total),
            )
    if out is not None:
        found.save(out)
    if store is not None:
        _keep(found, fit, store, collection)
    if as_json:
        extra = {} if fit is None else {"alpha": asdict(fit) | {"wins": wins(fit)}}
        print(json.dumps(asdict(found) | extra, indent=2))
    else:
        _draw(results(), found, loaded.name, out)
        if fit is not None:
            draw_alpha(results(), fit, ALPHA)
        if store is not None:
            results().print(f"Kept with {without_password(store)}.", soft_wrap=True, markup=False)


def _keep(found: "Calibration", fit: "AlphaFit | None", store: str, collection: str | None) -> None:
    """Store the calibration with an index, and a hybrid's α where it won."""
    with opened(configured(store=store, collection=collection), read_only=False) as engine:
        engine.calibrate(found)
        if fit is not None and wins(fit):
            kept = engine.collection.manifest.settings
            if str(kept.get("retriever", "hybrid")).partition(":")[0] == "hybrid":
                engine.collection.configure({**kept, "retriever": f"hybrid:{fit.alpha:.2f}"})


_CHOICES = {
    "sigma": "σ = {0.sigma.value:.3f} for every query",
    "divisor": "σ from the candidates of each query, by the rule with the divisor {0.divisor.value:.2f}",
    "default": "the rule as it comes: σ from the candidates of each query",
}


_TOKEN_CACHE = 1024**3
"""Bytes of token vectors to keep: passages recur among the candidates of many queries."""


def _check_texts(dataset: "Dataset", option: str) -> None:
    """Made-up words say nothing to a reader."""
    from dartboard.datasets.synthetic import has_made_up_texts

    if has_made_up_texts(dataset):
        raise ConfigError(
            f"{option} reads texts, and those of {dataset.name} are made up: choose another data set"
        )


def _draw(console: "Console", found: "Calibration", name: str, out: Path | None) -> None:
    from dartboard.plain_text import counted

    fits = {"σ": found.sigma, "divisor of the rule": found.divisor}
    units = {"divisor of the rule": "facets"} if found.measure == "facets" else {}
    if found.temperature is not None:
        fits["temperature of the scores"] = found.temperature.estimate
    console.print(f"[bold]{name}[/bold]")
    console.print(_fits(fits, units))
    if found.missed:
        console.print(
            f"{counted(found.missed, 'pair')} more could not be used: the passage is not "
            f"among the {found.triage_k} nearest to its query. Many of them: labels or model are off."
        )
    if found.held_out:
        what = {"recall": f"recall@{found.k}", "facets": f"share of facets among {found.k} picks"}
        title = f"{what[found.measure]} on held-out queries"
        console.print(_trial(title, found.held_out, "p against the rule", found.p_values))
    console.print(f"Use [bold]{_CHOICES[found.kind].format(found)}[/bold]: {found.reason}.")
    if found.temperature is not None:
        _draw_temperature(console, found.temperature, found.k)
    if out is not None:
        console.print(
            f"Written to {out}. In Python: DartboardRetriever(…, calibration=Calibration.load({str(out)!r}))"
        )


def _draw_temperature(console: "Console", found: "Temperature", k: int) -> None:
    if found.held_out:
        p_values = {} if found.p_value is None else {"fitted": found.p_value}
        title = f"hybrid: recall@{k} on held-out queries"
        console.print(_trial(title, found.held_out, "p against auto", p_values))
    choice = {
        "fitted": f"temperature = {found.estimate.value:.3g} for every query",
        "auto": "the standard deviation of each query's scores",
    }[found.kind]
    console.print(f"In the hybrid variant use [bold]{choice}[/bold]: {found.reason}.")


def _fits(fits: "dict[str, Estimate]", units: dict[str, str]) -> "Table":
    from rich.table import Table

    table = Table("", "estimate", "95 % interval", "from", box=None, pad_edge=False, header_style="bold")
    for label, fit in fits.items():
        table.add_row(label, *_known(fit), f"{fit.pairs} {units.get(label, 'pairs')}")
    return table


def _known(fit: "Estimate") -> tuple[str, str]:
    """The estimate, where there is one, and its interval."""
    if fit.at_edge:
        return "none", fit.interval
    wide = "" if fit.settled else "  (wide: few or contradictory pairs)"
    return f"{fit.value:.3g}", f"{fit.interval}{wide}"


def _trial(
    title: str, held_out: dict[str, dict[str, float]], against: str, p_values: dict[str, float]
) -> "Table":
    from rich.table import Table

    corpora = list(next(iter(held_out.values())))
    table = Table(title, *corpora, against, box=None, pad_edge=False, header_style="bold")
    for kind, by_corpus in held_out.items():
        p = f"{p_values[kind]:.3f}" if kind in p_values else ""
        table.add_row(kind, *(f"{by_corpus[corpus]:.3f}" for corpus in corpora), p)
    return table


def fit_alpha_on(
    dataset: "Dataset", model: "EmbeddingModel", *, seed: int, progress: Callable[[int, int], None]
) -> "AlphaFit":
    """α of dense and BM25 over the data set's own passages, held in memory."""
    from dartboard.retrievers.alpha_fit import fit_alpha
    from dartboard.retrievers.registry import retriever_by_name
    from dartboard.stores import Manifest, Record
    from dartboard.stores.memory import MemoryStore

    manifest = Manifest(model=model.fingerprint, model_name=model.name, dimension=model.embedding_dim)
    collection = MemoryStore().create("fitting", manifest)
    collection.upsert([Record(chunk.id, chunk.text, chunk.embedding) for chunk in dataset.chunks])
    return fit_alpha(
        [retriever_by_name(name, model=model) for name in ("dense", "bm25")],
        collection,
        dict(zip(dataset.query_ids, dataset.queries, strict=True)),
        {query: dict.fromkeys(ids, 1.0) for query, ids in dataset.ground_truth.items()},
        seed=seed,
        progress=progress,
    )


def wins(fit: "AlphaFit") -> bool:
    """Whether the fitted α beats the default on queries that it was not fitted on, by more than chance."""
    return fit.gain[0] > 0


def draw_alpha(console: "Console", fit: "AlphaFit", default: float) -> None:
    """The fit and what to use, in two lines."""
    low, high = fit.interval
    console.print(
        f"α of a hybrid of embeddings and BM25: {fit.alpha:.2f} ({low:.2f} to {high:.2f}); {fit.metric} on "
        f"held-out queries {fit.held_out:.3f}, with α = {default:.2f} {fit.default:.3f}",
        soft_wrap=True,
    )
    if wins(fit):
        console.print(f"Use [bold]--retriever hybrid:{fit.alpha:.2f}[/bold]: it wins on held-out queries.")
    else:
        console.print(f"Use [bold]α = {default:.2f}[/bold], the default: the difference may be chance.")
