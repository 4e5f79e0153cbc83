# ruff: noqa: E501 - prose
"""benchmarks/results/load.json, request.json and slider.json as docs/benchmarks/service.md."""

from collections.abc import Mapping
from typing import Any

Found = Mapping[str, Any]
NAMES = {
    "dartboard": "`dartboard serve`, dense",
    "hybrid": "`dartboard serve`, hybrid (the default)",
    "processes": "`dartboard serve --processes 2`, hybrid",
    "plain": "FastAPI + sentence-transformers + LangChain MMR",
}
PHASES = {
    "calm": "calm, {rate:g} a second",
    "target": "{rate:g} a second",
    "capacity": "{clients} clients in a closed loop",
    "overload": "twice the capacity, {rate:g} a second",
    "long questions": "{clients} clients, long questions",
    "calm after": "calm again",
}


def page(found: Found, request: Found, moved: Found) -> str:
    """The whole page."""
    setting, ours = found["setting"], found["dartboard"]
    parts = [
        "# The service under load",
        "This page shows throughput and latency of `dartboard serve` beside a plain FastAPI service. Measured on "
        f"{setting['measured']} with `benchmarks/load.py --scale {setting['scale']:g}`: {setting['chunks']:,} passages, client and server on the "
        f"same {setting['cores']} cores, 5 of 100 candidates selected, {setting['share_repeated']:.0%} of the questions from a "
        f"set of {setting['hot_questions']}, Poisson arrivals. Latency counts from the scheduled time. *Stolen* is CPU time that "
        "the host gave to other machines. Compare ratios, not absolute times.",
        *[f"## {NAMES[name]}\n\n{phases(found[name])}" for name in NAMES if name in found],
        "## Findings",
        "\n".join(f"- {line}" for line in findings(found)),
    ]
    if "soak" in ours:
        parts += ["## Memory over time", soak(ours["soak"])]
    parts += ["## One request", one_request(request), "## The σ slider", slider(moved)]
    return "\n\n".join(parts) + "\n"


def phases(part: Found) -> str:
    """One row a phase."""
    lines = [
        "| | served per second | p50 ms | p95 ms | p99 ms | rejected (429) | failed | CPU ms per request | stolen |",
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
    """The main findings, a sentence each."""
    ours = found["dartboard"]
    target, calm, over = ours["target"], ours["calm"], ours["overload"]
    said = [
        f"With the dense retriever, at {target['rate']:g} questions a second, {target['served_a_second']:g} were served and "
        f"{target['refused'] / target['asked']:.2%} rejected; p99 {target['ms']['p99']:.0f} ms.",
        f"At twice its capacity, still dense, admitted requests had a p99 of {over['ms']['p99']:.0f} ms, "
        f"{over['ms']['p99'] / calm['ms']['p99']:.1f} times that of a calm service ("
        f"{over['settled_ms']['p99']:.0f} ms without the first second, before admission control reacts); "
        f"{over['refused'] / over['asked']:.0%} got 429 (p99 {over['refused_ms']['p99']:.0f} ms), "
        f"{over['failed']} failed."
        if over["refused_ms"]
        else "At twice its capacity no request was rejected.",
    ]
    if "hybrid" in found:
        both = found["hybrid"]
        said.append(
            f"With the hybrid retriever, the default, its capacity is {both['capacity']['served_a_second']:g} a second; of "
            f"{target['rate']:g} a second {both['target']['refused'] / both['target']['asked']:.1%} were rejected, p99 "
            f"{both['target']['ms']['p99']:.0f} ms."
        )
    if "processes" in found:
        several, one = found["processes"], found["hybrid"]
        said.append(
            f"Two processes on {found['setting']['cores']} cores serve {several['capacity']['served_a_second']:g} a second over "
            f"{several['capacity']['clients']} connections where one serves {one['capacity']['served_a_second']:g}, and "
            f"{several['overload']['served_a_second']:g} instead of {one['overload']['served_a_second']:g} at twice that, when "
            "there are many. They hold "
            f"{several['capacity']['megabytes_held']:,.0f} MB instead of {one['capacity']['megabytes_held']:,.0f}."
        )
    if "plain" in found:
        theirs = found["plain"]
        said += [
            f"Capacity: {ours['capacity']['served_a_second']:g} questions a second against "
            f"{theirs['capacity']['served_a_second']:g} "
            f"({ours['capacity']['served_a_second'] / theirs['capacity']['served_a_second']:.1f} times as many).",
            f"At {target['rate']:g} a second the plain service answered {_answered(theirs['target'])} within 30 seconds, and at "
            f"twice its own capacity {_answered(theirs['overload'])}: it queues every request and keeps working for clients that "
            "have disconnected.",
        ]
    return said


def _answered(row: Found) -> str:
    return f"{row['served'] / row['asked']:.0%} of the questions"


def soak(part: Found) -> str:
    """Memory at the beginning and at the end."""
    held = part["megabytes"]
    return (
        f"`benchmarks/load.py --soak 600`, {part['measured']}. Other processes took {part['others']:.0%} of the CPU time during this run. {part['seconds'] / 60:.0f} minutes ({part['rate']:g} a second, {part['served']:,} answers, "
        f"{part['refused']} rejected, {part['failed']} failed, p99 {part['ms']['p99']:.0f} ms): "
        f"{held['second fifth']:.0f} MB in the second fifth of the time, {held['last fifth']:.0f} MB in the last, "
        f"{part['growth']:+.1%}; at most {held['most']:.0f} MB. Without memory-mapped files the fifths held "
        f"{', '.join(f'{size:.0f}' for size in held['own, by fifths'])} MB, most of the growth while "
        "the caches of query vectors and fingerprints fill up."
    )


REQUESTS = {
    "cached": "a question whose vector is cached",
    "new": "a new question",
    "health": "`GET /healthz`",
}


def one_request(found: Found) -> str:
    """Processor time of a request, and the flame graph."""
    now, rounds = found["now"], found["setting"]["rounds"]
    lines = [
        f"`benchmarks/request.py`, {found['setting']['measured']}: the demo corpus, one client, medians of {rounds} rounds of 500 "
        "requests. Processor time of the whole server, and of its event loop, which reads and writes HTTP.",
        "",
        "| | CPU ms | of these, event loop |",
        "|---|---|---|",
    ]
    for kind, title in REQUESTS.items():
        lines.append(f"| {title} | {now[kind]['cpu_ms']:.1f} | {now[kind]['event_loop_ms']:.1f} |")
    stages = now["stages_ms"]
    lines += [
        "",
        f"By the clock, finding the candidates of a cached question takes {stages['search'] + stages['fetch']:.1f} ms and "
        f"selecting from them {stages['select']:.1f} ms, near-duplicates included (medians of 50 requests with `explain`). The "
        "flame graph shows who holds Python's lock, so work of NumPy and the encoder without it is missing; open it to zoom.",
        "",
        "[![Flame graph of requests with cached vectors](../images/request.svg)](../images/request.svg)",
    ]
    return "\n".join(lines)


def slider(moved: Found) -> str:
    """How fast the playground follows the σ slider."""
    trip, drawn, painted = moved["round_trip"], moved["answered"], moved["painted"]
    return (
        f"`benchmarks/slider.py`: {moved['moves']} moves in Chromium {moved['chromium'].partition('.')[0]} without a GPU, demo "
        f"corpus; median (95 % quantile). Round trip: {trip['p50']:.0f} ms ({trip['p95']:.0f}). Page updated: "
        f"{drawn['p50']:.0f} ms ({drawn['p95']:.0f}). Painted: {painted['p50']:.0f} ms ({painted['p95']:.0f})."
    )
