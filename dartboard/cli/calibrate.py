"""``dartboard calibrate``: σ from labelled pairs or facets."""

from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import (
    CollectionOption,
    DataOption,
    DownloadOption,
    configured,
    load_model,
    opened,
)
from dartboard.cli.console import messages, print_json, progress, results, show
from dartboard.errors import ConfigError

if TYPE_CHECKING:
    from dartboard.calibration import Calibration, Estimate
    from dartboard.embeddings import EmbeddingModel
    from dartboard.evaluation.alpha_fit import AlphaFit
    from dartboard.types import Dataset


class Measure(StrEnum):
    """What the trial on held-out queries counts."""

    RECALL = "recall"
    FACETS = "facets"


def calibrate(
    dataset: Annotated[
        str, typer.Option(metavar="NAME", help="A data set by name (see dartboard datasets) or path.")
    ],
    data: DataOption = None,
    download: DownloadOption = False,
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
    by maximum likelihood, with a 95 % interval. Half of the queries fit it. The other half decides, on the
    corpus as it is and with near-copies added, whether it beats the rule that takes σ from the candidates by
    more than chance (a permutation test over queries, p < .05). Few or contradictory pairs keep the rule.

    Do you want k passages that cover many aspects? Then judge facets: which passages say the same thing, in
    qrels/subtopics.txt of a BEIR folder (query, facet, passage, grade). The trial then counts the facets
    found among k picks, on the corpus as it is. --measure says which of the two is
    counted. Do you want all passages that answer a query? Then use recall.

    Where texts are known, near-duplicates are removed before every trial, as in a search.

    With --alpha, α of the hybrid retriever is fitted, too; it is kept only where it beats .7 on held-out
    queries.

    With --store, an index keeps all that and uses it from then on: σ is what "auto" means there.

    \b
    Examples:
      dartboard calibrate --dataset hotpotqa_dev200 --data ~/benchmarks
      dartboard calibrate --dataset mine --out calibration.json
      dartboard calibrate --dataset mine --measure facets -k 10
      dartboard calibrate --dataset mine --alpha --store index.dartboard

    \b
    Then, in Python:
      from dartboard.calibration import Calibration
      retriever = DartboardRetriever(config, model, calibration=Calibration.load("calibration.json"))
    """
    from dartboard import calibration as room
    from dartboard.datasets import load_dataset, with_redundancy
    from dartboard.retrievers.hybrid import ALPHA
    from dartboard.stores.urls import without_password

    if store is not None:  # told before the work begins
        with opened(configured(store=store, collection=collection)) as engine:
            engine.collection  # noqa: B018 - it has to be there
    model = load_model(messages())
    with progress() as listen:
        loaded = load_dataset(dataset, data, model, progress=listen, fetch=download, paths=True)
        labelled = room.labelled_by(loaded)
        counted = room.measure_for(labelled, None if measure is None else measure.value)
        held = len(loaded.queries) - len(loaded.queries) // 2
        steps = 2 * held if counted == "recall" else held
        copied = None
        if counted == "recall":
            copied = with_redundancy(loaded, copies=copies, cosine=cosine, seed=seed)
        found = room.calibrate(
            labelled,
            room.labelled_by(copied) if copied is not None else None,
            measure=counted,
            model=model.fingerprint,
            k=k,
            seed=seed,
            progress=lambda done: listen("try on held-out queries", done, steps),
        )
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
        print_json(asdict(found) | extra)
    else:
        _draw(found, out)
        if fit is not None:
            draw_alpha(fit, ALPHA)
        if store is not None:
            show(f"Kept with {without_password(store)}.")


def _keep(found: "Calibration", fit: "AlphaFit | None", store: str, collection: str | None) -> None:
    """Store the calibration with an index, and a hybrid's α where it won."""
    with opened(configured(store=store, collection=collection), read_only=False) as engine:
        engine.calibrate(found)
        if fit is not None and wins(fit):
            kept = engine.collection.manifest.settings
            if str(kept.get("retriever", "hybrid")).partition(":")[0] == "hybrid":
                engine.collection.configure({"retriever": f"hybrid:{fit.alpha:.2f}"})


_CHOICES = {
    "sigma": "σ = {0.sigma.value:.3f} for every query",
    "default": "the rule as it comes: σ from the candidates of each query",
}


def _check_texts(dataset: "Dataset", option: str) -> None:
    """Made-up words say nothing to a reader."""
    from dartboard.datasets.synthetic import has_made_up_texts

    if has_made_up_texts(dataset):
        raise ConfigError(
            f"{option} reads texts, and those of {dataset.name} are made up: choose another data set"
        )


def _draw(found: "Calibration", out: Path | None) -> None:
    from dartboard.plain_text import counted

    _table(
        ["", "estimate", "95 % interval", "from"], [["σ", *_known(found.sigma), f"{found.sigma.pairs} pairs"]]
    )
    if found.missed:
        show(
            f"{counted(found.missed, 'pair')} more could not be used: the passage is not "
            f"among the {found.triage_k} nearest to its query. Many of them: labels or model are off."
        )
    if found.held_out:
        what = {"recall": f"recall@{found.k}", "facets": f"share of facets among {found.k} picks"}
        corpora = list(found.held_out["default"])
        rows = [
            [
                kind,
                *(f"{by_corpus[corpus]:.3f}" for corpus in corpora),
                f"{found.p_value:.3f}" if kind == "sigma" else "",
            ]
            for kind, by_corpus in found.held_out.items()
        ]
        _table([f"{what[found.measure]} on held-out queries", *corpora, "p against the rule"], rows)
    show(f"Use {_CHOICES[found.kind].format(found)}: {found.reason}.", "bold")
    if out is not None:
        show(
            f"Written to {out}. In Python: DartboardRetriever(…, calibration=Calibration.load({str(out)!r}))"
        )


def _table(titles: list[str], rows: list[list[str]]) -> None:
    from rich.table import Table

    table = Table(*titles, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    results().print(table)


def _known(fit: "Estimate") -> tuple[str, str]:
    """The estimate, where there is one, and its interval."""
    if fit.at_edge:
        return "none", fit.interval
    wide = "" if fit.settled else "  (wide: few or contradictory pairs)"
    return f"{fit.value:.3g}", f"{fit.interval}{wide}"


def fit_alpha_on(
    dataset: "Dataset", model: "EmbeddingModel", *, seed: int, progress: Callable[[int, int], None]
) -> "AlphaFit":
    """α of dense and BM25 over the data set's own passages, held in memory."""
    from dartboard.evaluation.alpha_fit import fit_alpha
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


def draw_alpha(fit: "AlphaFit", default: float) -> None:
    """The fit and what to use, in two lines."""
    low, high = fit.interval
    show(
        f"α of a hybrid of embeddings and BM25: {fit.alpha:.2f} ({low:.2f} to {high:.2f}); {fit.metric} on "
        f"held-out queries {fit.held_out:.3f}, with α = {default:.2f} {fit.default:.3f}"
    )
    if wins(fit):
        show(f"Use --retriever hybrid:{fit.alpha:.2f}: it wins on held-out queries.", "bold")
    else:
        show(f"Use α = {default:.2f}, the default: the difference may be chance.", "bold")
