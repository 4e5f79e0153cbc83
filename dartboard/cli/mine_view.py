"""How ``dartboard mine`` looks: a bar with the cost so far, an estimate, an outcome, problems."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from dartboard.llm.usage import Usage
    from dartboard.mining.dataset import Mined
    from dartboard.mining.judge_runner import Estimate, StepListener
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

        def listen(step: str, done: int, total: int | None, usage: "Usage") -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total, cost="")
            bar.update(tasks[step], completed=done, total=total, cost=told_cost(usage))

        yield listen


def told_cost(usage: "Usage") -> str:
    """Calls, tokens and money in a few words."""
    if not usage.calls and not usage.unanswered:
        return "no calls"
    tokens = usage.input_tokens + usage.output_tokens
    money = f", {usage.cost:.4f} spent" if usage.cost else ""
    lost = f", {counted(usage.unanswered, 'request')} lost without an answer" if usage.unanswered else ""
    return f"{usage.calls:,} calls, {tokens:,} tokens{money}{lost}"


def draw_estimate(console: Console, steps: "Mapping[str, Estimate]", budget: float | None) -> None:
    """Calls, tokens and money by step, before the first call."""
    from dartboard.mining.pipeline import total

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("step")
    for title in ("verdicts", "in journal", "calls", "tokens in", "tokens out", "cost"):
        table.add_column(title, justify="right")
    whole = total(steps)
    for name, one in [*steps.items(), ("all", whole)]:
        usage = one.usage
        table.add_row(
            f"{name} (about)" if name == "kernels" else name,
            *(f"{count:,}" for count in (one.tasks, one.known, usage.calls)),
            *(f"{count:,}" for count in (usage.input_tokens, usage.output_tokens)),
            f"{usage.cost:.4f}" if usage.cost else "–",
            style="bold" if name == "all" else "",
        )
    console.print(table)
    if whole.usage.calls:
        console.print("A model that thinks before it answers uses more output tokens than this.")
    if not whole.usage.calls:
        console.print("This judge asks nobody: it costs nothing.")
    elif not whole.usage.cost:
        console.print("No price is known for this model: give --prices IN,OUT to see what it costs.")
    elif budget is not None and whole.usage.cost > budget:
        console.print(f"More than the budget of {budget:g}: the run will stop there, and can be resumed.")
    console.print("Nobody was asked. Leave --dry-run out to begin.")


def draw_outcome(console: Console, mined: "Mined", file: Path, spent: "Usage") -> None:
    """What a run found, how far to trust it, and what to do with it."""
    from dartboard.mining.controls import failures

    pairs = mined.pairs
    console.print(
        f"{len(pairs)} questions on {mined.corpus}, judged by {mined.judge}: "
        f"{mined.positives} positive contexts, {mined.negatives} negative, {mined.unsure} unsure.",
        soft_wrap=True,
    )
    console.print(_controls(mined.controls))
    marked = mined.controls["answered_without_context"]
    if marked:
        console.print(f"Answered without any context, and marked: {', '.join(marked)}.", soft_wrap=True)
    if insufficient := mined.controls.get("insufficient_targets"):
        console.print(
            "Left out of the positive controls, since their targets are not enough for an answer (their "
            f"kernels say what else it needs): {', '.join(insufficient)}.",
            soft_wrap=True,
        )
    if mined.agreement is not None:
        console.print(_agreed(mined.agreement), soft_wrap=True)
    if statuses := mined.kernel_statuses:
        sizes = [len(pair.kernel.contexts) for pair in pairs if pair.kernel and pair.kernel.contexts]
        told = ", ".join(f"{count} {status}" for status, count in statuses.items())
        mean = f", {sum(sizes) / len(sizes):.1f} contexts on average" if sizes else ""
        console.print(f"Kernels: {told}{mean}.")
    for reason, count in list(mined.unsure_reasons.items())[:_REASONS]:
        console.print(f"Unsure ({count}): {reason}", soft_wrap=True, markup=False)
    console.print(f"Cost: {told_cost(spent)}.")
    if not mined.positives or failures(mined.controls):
        console.print(f"\nWritten to {file}.", soft_wrap=True, markup=False)
        return
    console.print(f"\nWritten to {file}. Next:", soft_wrap=True, markup=False)
    console.print(
        f"  dartboard eval --dataset {file} --systems quick --out report", soft_wrap=True, markup=False
    )
    console.print(f"  dartboard calibrate --dataset {file}", soft_wrap=True, markup=False)


def _controls(found: Mapping[str, Any]) -> Table:
    """The judge's error rates: over all, and by kind of control."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("controls", "rate", "95 % interval", "errors", "unsure"):
        table.add_column(title, justify="left" if title == "controls" else "right")
    shown = {name: found[name] for name in ("false_positive", "false_negative")}
    for name, rate in [*shown.items(), *(found["by_kind"].items())]:
        decided, unsure = rate["decided"], rate["unsure"]
        none = "none decided" if unsure else "none asked"
        interval = f"{rate['low']:.1%} to {rate['high']:.1%} ({counted(rate['cases'], 'case')})"
        table.add_row(
            name.replace("_", " ") + ("" if name in shown else " controls wrong"),
            f"{rate['rate']:.1%}" if decided else none,
            interval if decided else "–",
            f"{rate['errors']} of {decided}",
            str(unsure),
        )
    return table


def counted(number: int, what: str) -> str:
    """1 case, 2 cases."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _agreed(found: Mapping[str, Any]) -> str:
    cases = counted(found["cases"], "case")
    if found["kappa"] is None:
        kappa = "Cohen's kappa is undefined: both give everything the same label"
    elif found["low"] is None:
        same = "they never differ" if found["observed"] == 1 else "they differ alike in every case"
        kappa = (
            f"Cohen's kappa {found['kappa']:.2f}, without an interval: {same}, so resampling shows no doubt; "
            f"with {cases} they may differ on up to {found['most_apart']:.1%} of contexts"
        )
    else:
        interval = f"{found['low']:.2f} to {found['high']:.2f}, {cases}"
        kappa = f"Cohen's kappa {found['kappa']:.2f} ({interval})"
    first, second = str(found["first"]), str(found["second"])
    shared = " and ".join(found.get("shared", ()))
    dependent = f" They are not independent: {shared} is part of both." if shared else ""
    agreed = f"{first} and {second} agree on {found['observed']:.1%} of {found['pairs']} contexts"
    return f"{agreed}; {kappa}.{dependent}"


def draw_problems(console: Console, path: Path, problems: "Sequence[Problem]") -> None:
    """One problem a line, as compilers do it."""
    for one in problems:
        pair = f" [{one.pair}]" if one.pair else ""
        console.print(f"{path}:{one.line}: {one.level}:{pair} {one.message}", soft_wrap=True, markup=False)
    errors = sum(one.level == "error" for one in problems)
    warnings = len(problems) - errors
    if errors:
        console.print(f"errors: {errors}, warnings: {warnings}")
    else:
        console.print(f"{path} is sound" + (f" (warnings: {warnings})" if warnings else "."), soft_wrap=True)


def draw_comparisons(console: Console, found: Mapping[str, Any]) -> None:
    """Jaccard of every two sources."""
    if not found["sources"]:
        console.print("There are no kernels from two sources for any question: nothing to compare.")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("sources", "questions", "Jaccard", "95 % interval", "equal"):
        table.add_column(title, justify="left" if title == "sources" else "right")
    for one in found["sources"]:
        names, interval = f"{one['first']} – {one['second']}", f"{one['low']:.3f} to {one['high']:.3f}"
        if one["low"] == one["high"]:
            interval = "none: all alike"
        table.add_row(names, str(one["cases"]), f"{one['jaccard']:.3f}", interval, str(one["equal"]))
    console.print(table)
    for row in found["pairs"]:
        if row["jaccard"] < 1:
            console.print(
                f"- {row['id']}: only {row['first']}: {', '.join(row['only_first']) or 'nothing'}; "
                f"only {row['second']}: {', '.join(row['only_second']) or 'nothing'}",
                soft_wrap=True,
                markup=False,
            )
