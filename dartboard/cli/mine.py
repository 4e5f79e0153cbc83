"""``dartboard mine``: from a benchmark and a corpus to a data set whose labels were proved."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dartboard.cli.common_options import JsonOption, spelled_out
from dartboard.cli.mine_options import (
    CorpusOption,
    Drawing,
    FileArgument,
    Judges,
    Judging,
    OutOption,
    RegistryArgument,
    SeedOption,
    Written,
)

mine = typer.Typer(name="mine", rich_markup_mode=None)


@mine.callback(invoke_without_command=True)
def about(context: typer.Context) -> None:
    """Make a data set to measure retrieval with, from questions and your own corpus.

    Nobody's word is taken for what is relevant: a judge is shown each question with each context and says
    whether it can be answered from that alone, quoting where. The judge is judged, too: on questions whose
    right verdict is known, in every run, and its error rates stand in the data set.

    \b
    The flow:
      registry.yaml ── extract ──> raw.jsonl ── judge ──> retrieval_dataset.yaml
      questions,       contexts,   nothing      controls, positives, negatives,
      targets          drawn       labelled     verdicts, kernels, error rates
                                                kernels
      then: validate, compare, and  dartboard eval | calibrate --dataset FILE

    \b
    A registry is a file such as this:
      cases:
        - id: "01"
          question: "Which setting stores an agent's reply?"
          target: "google.adk.agents.LlmAgent"     # believed, not proved
          answer: "output_key"                     # for the offline judge

    \b
    All at once, offline and free:
      pip install --no-deps google-adk==1.20.0     # what the example reads
      dartboard mine run examples/adk --corpus package:google.adk --judge answers --out mined

    \b
    Or step by step, with a model, and never more than 5 dollars:
      dartboard mine extract examples/adk --corpus package:google.adk --out raw.jsonl
      dartboard mine judge raw.jsonl --judge gemini --prices 2,12 --out mined --dry-run
      dartboard mine judge raw.jsonl --judge gemini --prices 2,12 --out mined --budget 5
      dartboard mine judge raw.jsonl --judge gemini --prices 2,12 --out mined --budget 9 --resume
      dartboard mine validate mined

    \b
    What it is good for:
      dartboard eval --dataset mined/retrieval_dataset.yaml --systems quick --out report
      dartboard calibrate --dataset mined/retrieval_dataset.yaml

    Every verdict is on disk before it is used. Press Ctrl-C, pull the plug: --resume goes on from there
    and ends with the same bytes. A model that gives no readable answer several times in a row ends the run
    with an error; those calls are no verdicts, and --resume asks them again.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@mine.command(short_help="Draw contexts for every question; label nothing.")
@spelled_out
def extract(
    registry: RegistryArgument,
    corpus: CorpusOption,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write the raw candidates.")
    ] = Path("raw.jsonl"),
    drawing: Drawing,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Draw contexts for every question: its targets, random ones, and near misses. Nothing is labelled.

    A target is what the registry believes to answer a question; what a case's solution imports counts as
    one, too. Near misses are the best by BM25, the nearest by meaning, and what Dartboard selects. A
    package is read and never imported.

    \b
    Examples:
      dartboard mine extract examples/adk --corpus package:google.adk
      dartboard mine extract cases.yaml --corpus folder:docs --out raw.jsonl --hard 10
      dartboard mine extract cases.yaml --corpus store:index.dartboard#manuals
    """
    from dartboard.cli.console import results
    from dartboard.cli.mine_run import extracted

    raw, _ = extracted(registry, corpus, out, drawing.settings(seed))
    facts = {
        "file": str(out),
        "corpus": raw.corpus_name,
        "cases": len(raw.cases),
        "contexts": sum(len(pool.contexts) for pool in raw.pools),
    }
    if as_json:
        print(json.dumps(facts, indent=2))
        return
    results().print(
        f"{facts['cases']} questions with {facts['contexts']} contexts of {raw.corpus_name} are in {out}.\n"
        f"Next: dartboard mine judge {out} --judge … --out DIR",
        soft_wrap=True,
        markup=False,
    )


@mine.command(short_help="Label raw candidates and find kernels.")
@spelled_out
def judge(
    raw: Annotated[Path, typer.Argument(metavar="RAW", help="What dartboard mine extract wrote.")],
    out: OutOption,
    *,
    judges: Judges,
    judging: Judging,
    corpus: Annotated[
        str | None,
        typer.Option("--corpus", metavar="SPEC", help="Where the corpus is now, if it has moved."),
    ] = None,
    written: Written,
) -> None:
    """Show the judge each question with each context, find kernels, and write the data set.

    First come controls: no context at all, planted answers, strangers' texts, texts stuffed with the
    question's words, texts that claim to be the answer. Then every context alone, then sets of contexts:
    what is missing is searched for and added until the judge can answer, and what is not needed is left out.

    \b
    In DIR:
      retrieval_dataset.yaml   pairs with verdicts and evidence, kernels, error rates
      beir/, qrels.txt         the same for other tools, with facets
      journal.jsonl            every verdict that was paid for

    \b
    Examples:
      dartboard mine judge raw.jsonl --judge answers --out mined
      dartboard mine judge raw.jsonl --judge gemini --out mined --dry-run
      dartboard mine judge raw.jsonl --judge openai:qwen3@http://localhost:11434/v1 --out mined
      dartboard mine judge raw.jsonl --second-judge openai:gpt-5 --budget-tokens 2000000 --rpm 60 --out mined
      dartboard mine judge raw.jsonl --judge answers --checks --out mined

    \b
    Environment:
      GEMINI_API_KEY, OPENAI_API_KEY    for the endpoints that want one; --dry-run needs none
    """
    from dartboard.cli.mine_judges import JudgeOptions
    from dartboard.cli.mine_run import judged
    from dartboard.mining.raw_candidates import read_candidates

    options = JudgeOptions(out=out, **vars(judges), **vars(judging), **vars(written))
    options.check()
    judged(read_candidates(raw), corpus, options)


@mine.command(short_help="All of it: extract, judge, validate.")
@spelled_out
def run(
    registry: RegistryArgument,
    corpus: CorpusOption,
    out: OutOption,
    *,
    judges: Judges,
    drawing: Drawing,
    judging: Judging,
    written: Written,
) -> None:
    """Extract, judge and validate in one go; raw.jsonl goes into DIR, too.

    \b
    Examples:
      dartboard mine run examples/adk --corpus package:google.adk --judge answers --checks --out mined
      dartboard mine run cases.yaml --corpus folder:docs --prices 2,12 --budget 5 --out mined
      dartboard mine run cases.yaml --corpus folder:docs --prices 2,12 --budget 9 --out mined --resume
    """
    from dartboard.cli.mine_judges import JudgeOptions
    from dartboard.cli.mine_run import extracted, judged, raw_file

    options = JudgeOptions(out=out, **vars(judges), **vars(judging), **vars(written))
    options.check()
    with raw_file(options) as path:
        raw, opened = extracted(registry, corpus, path, drawing.settings(judging.seed))
        judged(raw, opened, options)


@mine.command(short_help="Check a mined data set, and list all that is wrong with it.")
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


@mine.command(short_help="How far the sources of kernels agree, by Jaccard.")
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
