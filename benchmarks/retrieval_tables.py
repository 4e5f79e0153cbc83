# ruff: noqa: E501 - prose
"""benchmarks/results/retrieval.json as docs/benchmarks/retrieval.md, and as tables of other documents."""

from collections.abc import Mapping, Sequence
from typing import Any

Found = Mapping[str, Any]


def page(found: Found) -> str:
    """The whole page."""
    parts = [
        "# Retrieval, measured",
        "Made by `python benchmarks/retrieval.py` (one thread for BLAS and OpenMP) and `python benchmarks/tables.py`. "
        "Vectors are synthetic, grouped around topics as passages are, unless the text says otherwise. Times of "
        "one run on one machine: ratios carry over, absolute times do not.",
        "## Search beside other engines",
        engines(found["engines"]),
        "## A whole search, but for the model",
        search(found["search"]),
        "## A million vectors in one file",
        million(found["million"]),
        "## Which index when",
        indexes(found["indexes"]),
        "## BM25, dense, ColBERT, hybrid",
        models(found["models"]),
        "## Indexing, and the specification's targets",
        indexing(found["indexing"]),
    ]
    return "\n\n".join(parts) + "\n"


def engines(part: Found) -> str:
    """Recall and speed, with how many times slower the others are."""
    ours = part["engines"]["dartboard, one file"]["queries_per_second"]
    rows = []
    for name, row in part["engines"].items():
        if "missing" in row:
            rows.append([name, "not installed", "", "", "", ""])
            continue
        rows.append(
            [
                name,
                f"{row['recall@100']:.3f}",
                f"{row['queries_per_second']:,.0f}",
                f"{ours / row['queries_per_second']:.1f}×",
                f"{row['load_seconds']:.0f}",
                f"{row['build_seconds']:.0f}",
            ]
        )
    heads = ("", "recall@100", "queries/s", "ours is faster by", "load s", "build s")
    return f"{part['vectors']:,} × {part['dimension']}, k = {part['k']}, one thread.\n\n{_table(heads, rows)}"


def search(part: Found) -> str:
    """Milliseconds at the median beside other frameworks."""
    rows = []
    for name, row in part["systems"].items():
        if "missing" in row:
            rows.append([name, "not installed", "", ""])
            continue
        stages = ", ".join(
            f"{stage} {ms:.2f}" for stage, ms in row.get("stages_ms", {}).items() if stage != "total"
        )
        rows.append([name, f"{row['median_ms']:.2f}", f"{row['p95_ms']:.2f}", stages])
    about = (
        f"{part['chunks']:,} chunks: find {part['triage']}, fetch them, choose {part['k']}, hand them over. The query's "
        "vector is given to all alike. LangChain's and LlamaIndex's FAISS stores compare all vectors, as they do "
        "by default, and hold their documents in memory; ours reads them from the file."
    )
    return about + "\n\n" + _table(("", "median ms", "95 % ms", "stages"), rows)


def million(part: Found) -> str:
    """One sentence a number."""
    rows = [
        ["loading and indexing", f"{part['load_seconds']:.0f} s"],
        ["memory at most", f"{part['peak_megabytes'] / 1000:.2f} GB"],
        ["search, k = 100, median / 95 %", f"{part['median_ms']:.1f} / {part['p95_ms']:.1f} ms"],
        ["recall@100", f"{part['recall@100']:.4f}"],
        ["first search after reopening", f"{part['first_search_after_reopening_seconds']:.2f} s"],
        ["on disk", f"{part['megabytes_on_disk'] / 1000:.1f} GB"],
    ]
    if unlike := part.get("recall@100_of_queries_unlike_all"):
        rows.append(["recall@100 of queries unlike any passage", f"{unlike:.3f}"])
    return _table((f"{part['vectors']:,} × 384", ""), rows)


def indexes(part: Sequence[Found]) -> str:
    """Build time, recall, speed and bytes by size and kind."""
    rows = [
        [
            f"{row['vectors']:,}",
            row["index"],
            f"{row['build_seconds']:.1f}",
            f"{row['recall@100']:.3f}",
            f"{row['queries_per_second']:,.0f}",
            f"{row['bytes_per_vector']:,}",
        ]
        for row in part
    ]
    return _table(("vectors", "index", "build s", "recall@100", "queries/s", "bytes a vector"), rows)


def models(part: Found) -> str:
    """Seed of every retrieval comparison: storage, speed, exact words, meaning."""
    rows = [
        [
            name,
            f"{row['bytes_per_document']:,}",
            f"{row['queries_per_second']:,.0f}",
            f"{row['identifiers_recall@10']:.3f}",
            f"{row['paraphrases_recall@10']:.3f}",
        ]
        for name, row in part["retrievers"].items()
    ]
    about = (
        f"{part['passages']:,} abstracts of SciFact. Identifiers are {part['identifiers']} words with digits or inner "
        f"capitals that stand in one abstract alone; paraphrases are {part['paraphrases']} claims written by people. "
        "Bytes are those kept beside the text. Speed includes encoding the query, which takes most of it for all "
        "but BM25."
    )
    heads = ("", "bytes a document", "queries/s", "identifiers, recall@10", "paraphrases, recall@10")
    return about + "\n\n" + _table(heads, rows)


def indexing(part: Found) -> str:
    """Throughput, then the specification's tables with what was measured."""
    rate = part["throughput"]
    table = part["specification"]
    rows = [
        [name, f"{row['median']:.2f}", f"{row['p95']:.2f}"] for name, row in table["milliseconds"].items()
    ]
    memory = [[name, f"{size:,.2f}"] for name, size in table["megabytes"].items()]
    return "\n\n".join(
        [
            f"{rate['files']} files, {rate['chunks']} chunks: {rate['indexing_chunks_per_second']:.0f} chunks/s, "
            f"{rate['share_of_the_limit']:.0%} of what the model alone encodes "
            f"({rate['encoding_alone_chunks_per_second']:.0f}); {rate['seconds_when_nothing_changed']:.2f} s when "
            "nothing has changed.",
            _table(("milliseconds", "median", "95 %"), rows),
            _table(("megabytes", ""), memory),
            f"1,000 queries × 100 candidates in one call: {table['1,000 queries × 100 candidates, seconds']:.2f} s.",
        ]
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
