"""Times and sizes, from selection.json, retrieval.json, load.json and scaling.json, as tables."""

from collections.abc import Mapping
from typing import Any

from dartboard.evaluation.plots import COLOURS, Drawing, as_svg, standalone
from dartboard.evaluation.tables import markdown

Found = Mapping[str, Any]

SERVICES = {
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


def selection(found: Found) -> str:
    """Milliseconds, and in brackets how many times dartboard's own."""
    rows = found["single"]
    cells = [
        [
            name,
            *(
                f"{_three(row['ms'][name])} ms ({_three(row['times_dartboard'][name])}×)"
                if name in row["ms"]
                else ""
                for row in rows
            ),
        ]
        for name in rows[0]["ms"]
    ]
    return markdown(["", *(f"n={row['n']}, k={row['k']}" for row in rows)], cells)


def engines(found: Found) -> str:
    """Recall and speed of a search for the nearest 100, and how many times slower others are."""
    part = found["engines"]["engines"]
    ours = part["dartboard, one file"]["queries_per_second"]
    rows = [
        [
            name,
            f"{row['recall@100']:.3f}",
            f"{row['queries_per_second']:,.0f}",
            f"{ours / row['queries_per_second']:.1f}×",
            f"{row['load_seconds'] + row['build_seconds']:.0f}",
        ]
        for name, row in part.items()
        if "missing" not in row
    ]
    return markdown(["", "recall@100", "queries/s", "ours is faster by", "load and build, s"], rows)


def search(found: Found) -> str:
    """Milliseconds of a whole search at the median beside other frameworks."""
    rows = [
        [name, f"{row['median_ms']:.2f}", f"{row['p95_ms']:.2f}"]
        for name, row in found["search"]["systems"].items()
        if "missing" not in row
    ]
    return markdown(["", "median ms", "95 % ms"], rows)


def growth(found: Found) -> str:
    """Load, memory and search by store and size."""
    rows = [
        [
            row["store"],
            f"{row['chunks']:,}",
            f"{row['load_seconds']:,.0f} s",
            f"{row['peak_megabytes']:,.0f} MB",
            f"{row['median_ms']:.1f} / {row['p95_ms']:.1f} ms",
            f"{row['recall@100']:.3f}",
            f"{row['megabytes_on_disk']:,} MB" if row["store"] == "one file" else "–",
        ]
        for row in found["growth"]
    ]
    heads = [
        "store",
        "chunks",
        "load and index",
        "memory at most",
        "search, median / 95 %",
        "recall@100",
        "disk",
    ]
    return markdown(heads, rows)


def growth_picture(found: Found) -> str:
    """The same as lines, on logarithmic axes."""
    shown = {"load_seconds": "load and index, s", "peak_megabytes": "memory, MB", "median_ms": "search, ms"}
    with Drawing(9.6, 3.0, panels=len(shown)) as (figure, panels):
        for axes, (key, title) in zip(panels, shown.items(), strict=True):
            for store, tint in (("one file", COLOURS["dartboard"]), ("PostgreSQL", COLOURS["mmr"])):
                rows = [row for row in found["growth"] if row["store"] == store]
                places = [row["chunks"] for row in rows]
                axes.plot(places, [row[key] for row in rows], "o-", color=tint, label=store)
            axes.set(xscale="log", yscale="log", xlabel="chunks", title=title)
        panels[0].legend(loc="upper left")
        return standalone(as_svg(figure, "How a store grows")) + "\n"


def indexes(found: Found) -> str:
    """Recall, speed and bytes a vector by kind of index, for the largest size."""
    largest = max(row["vectors"] for row in found["indexes"])
    rows = [
        [
            row["index"],
            f"{row['build_seconds']:.1f}",
            f"{row['recall@100']:.3f}",
            f"{row['queries_per_second']:,.0f}",
            f"{row['bytes_per_vector']:,}",
        ]
        for row in found["indexes"]
        if row["vectors"] == largest
    ]
    return markdown([f"{largest:,} vectors", "build s", "recall@100", "queries/s", "bytes per vector"], rows)


def retrievers(found: Found) -> str:
    """Storage, speed, exact words and meaning, retriever by retriever."""
    rows = [
        [
            name,
            f"{row['bytes_per_document']:,}",
            f"{row['queries_per_second']:,.0f}",
            f"{row['identifiers_recall@10']:.3f}",
            f"{row['paraphrases_recall@10']:.3f}",
        ]
        for name, row in found["models"]["retrievers"].items()
    ]
    heads = ["", "bytes per document", "queries/s", "identifiers, recall@10", "paraphrases, recall@10"]
    return markdown(heads, rows)


def services(found: Found) -> str:
    """Every service under load, a row a phase."""
    heads = ["served per second", "p50 ms", "p95 ms", "p99 ms", "rejected (429)", "failed", "CPU ms each"]
    parts = []
    for name, title in SERVICES.items():
        rows = []
        for phase, shown in PHASES.items():
            row = found[name][phase]
            times = row["ms"] or {}
            rows.append(
                [
                    shown.format(**row),
                    f"{row['served_a_second']:g}",
                    *(_time(times.get(at)) for at in ("p50", "p95", "p99")),
                    f"{row['refused'] / max(1, row['asked']):.1%}",
                    str(row["failed"]),
                    _time(row["cpu_ms_a_request"] if row["served"] else None),
                ]
            )
        parts.append(f"**{title}**\n\n{markdown(['', *heads], rows)}")
    return "\n\n".join(parts)


def soak(found: Found) -> str:
    """Memory at the beginning and at the end of a long run."""
    part = found["dartboard"]["soak"]
    held = part["megabytes"]
    return (
        f"{part['seconds'] / 60:.0f} minutes ({part['rate']:g} a second, {part['served']:,} answers, "
        f"{part['failed']} failed, p99 {part['ms']['p99']:.0f} ms): {held['second fifth']:.0f} MB in the "
        f"second fifth of the time, {held['last fifth']:.0f} MB in the last, {part['growth']:+.1%}."
    )


def headlines(selected: Found, retrieved: Found, loaded: Found) -> str:
    """Speed of selection, search and service, a line each."""
    single = {(row["n"], row["k"]): row["times_dartboard"] for row in selected["single"]}
    sizes = ((100, 10), (1000, 10), (1000, 50))
    faster = ", ".join(f"{single[size]['published Dartboard']:.0f}" for size in sizes)
    ms = {
        name: row["median_ms"] for name, row in retrieved["search"]["systems"].items() if "median_ms" in row
    }
    capacity = {
        name: loaded[name]["capacity"]["served_a_second"] for name in ("dartboard", "hybrid", "plain")
    }
    took = {name: f"{value:.1f} ms" for name, value in ms.items()}
    return "\n".join(
        (
            f"- **Selection** is {faster} times as fast as the published algorithm (10 of 100, 10 and 50 of "
            "1,000 candidates), with the same picks where that one is exact.",
            f"- **A whole search** over {retrieved['search']['chunks']:,} chunks takes "
            f"{took['dartboard, dense']} (dense) or {took['dartboard, hybrid']} (hybrid, the default), "
            "without the encoder. "
            f"LangChain with FAISS and MMR takes {took['LangChain, FAISS and MMR']}, LlamaIndex "
            f"{took['LlamaIndex, FAISS and MMR']}; both compare all vectors, ours uses an index.",
            f"- **The service** answers {capacity['dartboard']:.0f} questions a second on "
            f"{loaded['setting']['cores']} cores by vectors, {capacity['hybrid']:.0f} by default, encoder "
            f"included; FastAPI with sentence-transformers and LangChain's MMR {capacity['plain']:.0f}.",
        )
    )


def cluster(found: Found) -> str:
    """What the way to a cluster costs on one machine."""
    there, index = found["list"], found["index"]
    rows = [
        ["joining the cluster (starts about ten processes)", f"{found['join_seconds']:.0f} s"],
        ["loading and checking the model", f"{found['look_seconds']:.1f} s"],
        ["round trip of an empty task", f"{found['piece_ms']:.1f} ms"],
        [f"{there['passages']} passages encoded", _instead(there["there_ms"] / 1e3, there["here_ms"] / 1e3)],
        [f"{index['passages']} files indexed", _instead(index["there_seconds"], index["here_seconds"])],
    ]
    return markdown(["", ""], rows)


def _instead(there: float, here: float) -> str:
    return f"{there:.2f} s instead of {here:.2f}"


def _time(ms: float | None) -> str:
    if ms is None:
        return "–"
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.1f}"


def _three(value: float) -> str:
    """Three significant digits, no exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"
