# ruff: noqa: E501 - prose
"""benchmarks/results/load.json and slider.json as docs/benchmarks/service.md."""

from collections.abc import Mapping
from typing import Any

Found = Mapping[str, Any]
NAMES = {
    "dartboard": "`dartboard serve`, by vectors",
    "hybrid": "`dartboard serve`, by vectors and words (the default)",
    "plain": "FastAPI + sentence-transformers + LangChain MMR",
}
PHASES = {
    "calm": "calm, {rate:g} a second",
    "target": "{rate:g} a second",
    "capacity": "{clients} clients, each asks when it has its answer",
    "overload": "twice the capacity, {rate:g} a second",
    "long questions": "{clients} clients, long questions",
    "calm after": "calm again",
}


def page(found: Found, moved: Found) -> str:
    """The whole page."""
    setting, ours = found["setting"], found["dartboard"]
    parts = [
        "# The service under load",
        f"Made by `python benchmarks/load.py --soak 600` and `python benchmarks/tables.py` on {setting['measured']}: "
        f"{setting['chunks']:,} passages, {setting['cores']} cores, the client beside the servers on the same cores, "
        "loopback. Each request is a question in, five passages out of a hundred candidates, with the defaults of "
        f"each service, both finding candidates by vectors unless the title says otherwise. {setting['share_repeated']:.0%} of the questions repeat one of {setting['hot_questions']} "
        "hot ones; the others are drawn from some 240,000 combinations, so that in the long phases a few come again. Counted "
        "over the questions drawn, a cache of 10,000 vectors knows 4 % of them in the calm phase, 10 % at 100 a second, 16 % "
        "at capacity and at most 18 % in overload; all others have to be encoded. The passages are 4,000 encoded texts, each "
        "noted in 25 ways whose vectors are moved apart. Requests leave at times drawn beforehand "
        "(Poisson), and latency counts from when a request should have left. Times of one run on one machine: ratios "
        "carry over, absolute times do not. *Stolen* is processor time that the host gave to other machines meanwhile; a phase that lost more than 3 % was measured again, up to three times in all, and the least disturbed one is shown. The plain service got a new process for each phase (but for the last row, which follows overload), since it is busy long after its clients have left.",
        *[f"## {NAMES[name]}\n\n{phases(found[name])}" for name in NAMES if name in found],
        "## What it says",
        "\n".join(f"- {line}" for line in findings(found)),
    ]
    if "soak" in ours:
        parts += ["## Memory over a long time", soak(ours["soak"])]
    return "\n\n".join([*parts, "## The σ slider", slider(moved)]) + "\n"


def phases(part: Found) -> str:
    """One row a phase."""
    lines = [
        "| | served a second | p50 ms | p95 ms | p99 ms | refused (429) | failed | CPU ms a request | stolen |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, title in PHASES.items():
        row = part[name]
        ms = row["ms"]
        cells = [
            title.format(**row),
            f"{row['served_a_second']:g}",
            *(_time(ms and ms[at]) for at in ("p50", "p95", "p99")),
            f"{row['refused'] / max(1, row['asked']):.1%}",
            str(row["failed"]),
            _time(row["cpu_ms_a_request"] if row["served"] else None),
            f"{row['stolen']:.1%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _time(ms: float | None) -> str:
    if ms is None:
        return "–"
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}"


def findings(found: Found) -> list[str]:
    """The sentences that people look for."""
    ours = found["dartboard"]
    target, calm, over = ours["target"], ours["calm"], ours["overload"]
    said = [
        f"At {target['rate']:g} questions a second, {target['served_a_second']:g} were served and "
        f"{target['refused'] / target['asked']:.2%} refused; p99 {target['ms']['p99']:.0f} ms.",
        f"At twice its capacity, requests that were let in had a p99 of {over['ms']['p99']:.0f} ms, "
        f"{over['ms']['p99'] / calm['ms']['p99']:.1f} times that of a calm service ("
        f"{over['settled_ms']['p99']:.0f} ms without the first second, in which a sudden crowd is still taken "
        "for a burst); "
        f"{over['refused'] / over['asked']:.0%} got 429 (p99 {over['refused_ms']['p99']:.0f} ms), "
        f"{over['failed']} failed."
        if over["refused_ms"]
        else "At twice its capacity nothing was refused.",
    ]
    if "hybrid" in found:
        both = found["hybrid"]
        said.append(
            f"With words too, the default for an index, its capacity is {both['capacity']['served_a_second']:g} a second; of "
            f"{target['rate']:g} a second {both['target']['refused'] / both['target']['asked']:.1%} were refused, p99 "
            f"{both['target']['ms']['p99']:.0f} ms."
        )
    if "plain" in found:
        theirs = found["plain"]
        said += [
            f"Capacity: {ours['capacity']['served_a_second']:g} questions a second against "
            f"{theirs['capacity']['served_a_second']:g} "
            f"({ours['capacity']['served_a_second'] / theirs['capacity']['served_a_second']:.1f} times as many).",
            f"At {target['rate']:g} a second the plain service answered {_answered(theirs['target'])} within 30 seconds, and at "
            f"twice its own capacity {_answered(theirs['overload'])}: it takes in whatever comes and lets it wait, and works on "
            "for clients who have left.",
        ]
    return said


def _answered(row: Found) -> str:
    return f"{row['served'] / row['asked']:.0%} of the questions"


def soak(part: Found) -> str:
    """Memory at the beginning and at the end."""
    held = part["megabytes"]
    return (
        f"{part['seconds'] / 60:.0f} minutes at half the capacity ({part['rate']:g} a second, {part['served']:,} answers, "
        f"{part['refused']} refused, {part['failed']} failed, p99 {part['ms']['p99']:.0f} ms): "
        f"{held['second fifth']:.0f} MB in the second fifth of the time, {held['last fifth']:.0f} MB in the last, "
        f"{part['growth']:+.1%}; at most {held['most']:.0f} MB. Without mapped files, whose pages count once they were looked "
        f"at, the fifths held {', '.join(f'{size:.0f}' for size in held['own, by fifths'])} MB: the cache of vectors of questions fills, "
        f"and then nothing grows. Other processes took {part['others']:.0%} of the processors' time meanwhile."
    )


def slider(moved: Found) -> str:
    """How soon the playground follows the hand."""
    trip, drawn, painted = moved["round_trip"], moved["answered"], moved["painted"]
    return (
        f"`python benchmarks/slider.py`, {moved['moves']} moves in Chromium {moved['chromium'].partition('.')[0]} without a graphics "
        "processor, on the demo corpus, browser and service on the same two cores; medians, and in brackets the 95 % "
        f"quantile. The round trip that selects again takes {trip['p50']:.0f} ms ({trip['p95']:.0f}); the page has drawn what came "
        f"{drawn['p50']:.0f} ms ({drawn['p95']:.0f}) after the move, and the second frame after that is painted at {painted['p50']:.0f} ms "
        f"({painted['p95']:.0f}). The slider's own number moves at once."
    )
