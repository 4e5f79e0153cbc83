"""How ``dartboard mine`` looks: a bar with the cost so far, an estimate, an outcome, problems."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from dartboard.datasets.mined import Agreement, Controls, Mined
    from dartboard.llm.usage import Usage
    from dartboard.mining.pipeline import Estimate, StepListener
    from dartboard.mining.validation import Problem


_REASONS = 5


@contextmanager
def cost_bar() -> "Iterator[StepListener]":
    """A listener that draws one bar a step on stderr, with what the run has cost; silent in a pipe."""
    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[cost]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def listen(step: str, done: int, total: int, usage: "Usage") -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total, cost="")
            bar.update(tasks[step], completed=done, total=total, cost=told_cost(usage))

        yield listen


def told_cost(usage: "Usage") -> str:
    """Calls and tokens in a few words."""
    if not usage.calls and not usage.unanswered:
        return "no calls"
    lost = f", {counted(usage.unanswered, 'request')} lost without an answer" if usage.unanswered else ""
    return f"{usage.calls:,} calls, {usage.tokens:,} tokens{lost}"


def draw_estimate(console: Console, steps: "Mapping[str, Estimate]", budget: int | None) -> None:
    """Calls and tokens by step, before the first call."""
    from dartboard.mining.pipeline import total

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step")
    for title in ("verdicts", "in journal", "calls", "tokens in", "tokens out"):
        table.add_column(title, justify="right")
    whole = total(steps)
    for name, one in [*steps.items(), ("all", whole)]:
        usage = one.usage
        table.add_row(
            f"{name} (about)" if name == "kernels" else name,
            *(f"{count:,}" for count in (one.tasks, one.known, usage.calls)),
            *(f"{count:,}" for count in (usage.input_tokens, usage.output_tokens)),
            style="bold" if name == "all" else "",
        )
    console.print(table)
    if not whole.usage.calls:
        console.print("This asks nobody: it costs nothing.")
    else:
        console.print("A model that thinks before it answers uses more output tokens than this.")
        if budget is not None and whole.usage.tokens > budget:
            console.print(f"More than the budget of {budget:,}: the run will stop there; resume it then.")
    console.print("Nobody was asked. Leave --dry-run out to begin.")


def draw_outcome(console: Console, mined: "Mined", file: Path, spent: "Usage") -> None:
    """What a run found, how far to trust it, and what to do with it."""
    from dartboard.mining.pipeline import unsure_reasons

    pairs, controls = mined.pairs, mined.controls
    if mined.corpus is None or mined.judge is None or controls is None:  # pragma: no cover
        return
    console.print(
        f"{len(pairs)} questions on {mined.corpus.name}, judged by "
        f"{mined.judge.name}: {mined.positives} positive contexts, {mined.negatives} negative, "
        f"{mined.unsure} unsure.",
        soft_wrap=True,
    )
    console.print(_controls(controls))
    if controls.answered_without_context:
        marked = ", ".join(controls.answered_without_context)
        console.print(f"Answered without any context, and marked: {marked}.", soft_wrap=True)
    if controls.insufficient_targets:
        console.print(
            "Left out of the positive controls, since their targets are not enough for an answer (their "
            f"kernels say what else it needs): {', '.join(controls.insufficient_targets)}.",
            soft_wrap=True,
        )
    if mined.agreement is not None:
        console.print(_agreed(mined.agreement), soft_wrap=True)
    if statuses := mined.kernel_statuses:
        sizes = [len(pair.kernel) for pair in pairs if pair.kernel]
        told = ", ".join(f"{count} {status}" for status, count in statuses.items())
        mean = f", {sum(sizes) / len(sizes):.1f} contexts on average" if sizes else ""
        console.print(f"Kernels: {told}{mean}.")
    for reason, count in list(unsure_reasons(mined).items())[:_REASONS]:
        console.print(f"Unsure ({count}): {reason}", soft_wrap=True)
    console.print(f"Cost: {told_cost(spent)}.")
    if not mined.positives or not mined.verified:
        console.print(f"\nWritten to {file}.", soft_wrap=True)
        return
    console.print(f"\nWritten to {file}. Next:", soft_wrap=True)
    console.print(
        f"  dartboard eval --dataset {file} --systems quick --out report", soft_wrap=True, markup=False
    )
    console.print(f"  dartboard calibrate --dataset {file}", soft_wrap=True)


def _controls(found: "Controls") -> Table:
    """The judge's error rates: over all, and by kind of control."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("controls", "rate", "95 % interval", "errors", "unsure"):
        table.add_column(title, justify="left" if title == "controls" else "right")
    rows = {"false positive": found.false_positive, "false negative": found.false_negative}
    rows |= {f"{kind} controls wrong": rate for kind, rate in found.by_kind.items()}
    for name, rate in rows.items():
        none = "none decided" if rate.unsure else "none asked"
        interval = f"{rate.low:.1%} to {rate.high:.1%} ({counted(rate.cases, 'case')})"
        table.add_row(
            name,
            none if rate.rate is None else f"{rate.rate:.1%}",
            interval if rate.decided else "–",
            f"{rate.errors} of {rate.decided}",
            str(rate.unsure),
        )
    return table


def counted(number: int, what: str) -> str:
    """1 case, 2 cases."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _agreed(found: "Agreement") -> str:
    cases = counted(found.cases, "case")
    if found.kappa is None:
        kappa = "Cohen's kappa is undefined: both give everything the same label"
    elif found.low is None:
        same = "they never differ" if found.observed == 1 else "they differ alike in every case"
        kappa = (
            f"Cohen's kappa {found.kappa:.2f}, without an interval: {same}, so resampling shows no doubt; "
            f"with {cases} they may differ on up to {found.most_apart:.1%} of contexts"
        )
    else:
        kappa = f"Cohen's kappa {found.kappa:.2f} ({found.low:.2f} to {found.high:.2f}, {cases})"
    shared = " and ".join(found.shared)
    dependent = f" They are not independent: {shared} is part of both." if shared else ""
    agreed = f"agree on {found.observed:.1%} of {found.pairs} contexts"
    return f"{found.first} and {found.second} {agreed}; {kappa}.{dependent}"


def draw_problems(console: Console, path: Path, problems: "Sequence[Problem]") -> None:
    """One problem a line, as compilers do it."""
    for one in problems:
        pair = f" [{one.pair}]" if one.pair else ""
        console.print(f"{path}:{one.line}: {one.level}:{pair} {one.message}", soft_wrap=True)
    errors = sum(one.level == "error" for one in problems)
    warnings = len(problems) - errors
    if errors:
        console.print(f"errors: {errors}, warnings: {warnings}")
    else:
        console.print(f"{path} is sound" + (f" (warnings: {warnings})" if warnings else "."), soft_wrap=True)
