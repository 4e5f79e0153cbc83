"""Turn the benchmarks' JSON into the tables and pictures of the documentation.

python benchmarks/tables.py         # writes what stands between the markers of README and docs/, and pictures

People write the prose; tables stand between ``<!-- NAME:begin -->`` and ``<!-- NAME:end -->``.
"""

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from benchmarks import (  # noqa: E402
    context,
    copies,
    duplicates,
    encoders,
    explanations,
    indexing,
    mining,
    quality_tables,
    questions,
    relevance,
    retrieval_quality,
    speed_tables,
)

RESULTS = ROOT / "benchmarks" / "results"
IMAGES = ROOT / "docs" / "images"


def results(name: str) -> Any:
    """A benchmark's results."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def natural() -> quality_tables.BySet:
    """Natural redundancy with the default model."""
    return quality_tables.default(results("natural"))


def held_out() -> quality_tables.BySet:
    """The held-out sets with the default model."""
    return quality_tables.default(results("held_out"))


def compared() -> str:
    """The main table."""
    single = results("selection")["single"]
    times = next(row["ms"] for row in single if (row["n"], row["k"]) == (100, 10))
    return quality_tables.main_table(natural(), held_out(), results("quality"), times)


def by_encoder() -> dict[str, Any]:
    """Shares of several encoders."""
    return encoders.with_natural(results("encoders"), results("natural"))


SECTIONS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"compared": compared},
    "docs/benchmarks/index.md": {
        "compared": compared,
        "headlines": lambda: speed_tables.headlines(
            results("selection"), results("retrieval"), results("load")
        ),
    },
    "docs/benchmarks/quality.md": {
        "held-out": lambda: quality_tables.held_out_table(held_out()),
        "dense": lambda: quality_tables.share_table(natural(), "clean", "reporting"),
        "hybrid": lambda: quality_tables.share_table(natural(), "hybrid", "reporting"),
        "edits": lambda: quality_tables.share_table(natural(), "text edits"),
        "better": lambda: quality_tables.better(natural(), held_out()),
        "added": lambda: quality_tables.redundancy_table(results("quality")),
        "divisor": lambda: quality_tables.divisor_table(natural()),
        "numbers": lambda: quality_tables.number_table(natural()),
        "encoders-clean": lambda: encoders.share_table(by_encoder(), "clean"),
        "encoders-redundant": lambda: encoders.share_table(by_encoder(), "redundant"),
    },
    "docs/benchmarks/retrieval.md": {
        "selection": lambda: speed_tables.selection(results("selection")),
        "search": lambda: speed_tables.search(results("retrieval")),
        "engines": lambda: speed_tables.engines(results("retrieval")),
        "growth": lambda: speed_tables.growth(results("retrieval")),
        "indexes": lambda: speed_tables.indexes(results("retrieval")),
        "retrievers": lambda: speed_tables.retrievers(results("retrieval")),
        "indexing": lambda: indexing.table(results("indexing")),
    },
    "docs/benchmarks/service.md": {
        "services": lambda: speed_tables.services(results("load")),
        "soak": lambda: speed_tables.soak(results("load")),
    },
    "docs/benchmarks/questions.md": {
        "questions": lambda: questions.table(results("questions")),
        "copies": lambda: copies.table(results("copies")["retrievers"]),
    },
    "docs/benchmarks/mining.md": {
        "kernels": lambda: mining.kernel_table(results("mining")),
        "answers": lambda: mining.answer_table(results("mining")),
    },
    "docs/how-to/agents.md": {"questions": lambda: questions.headline(results("questions"))},
    "docs/how-to/context.md": {
        "answers": lambda: context.table(results("context")),
        "sections": lambda: context.sections_table(results("context")["sections"]),
    },
    "docs/how-to/duplicates.md": {
        "duplicates-answer": lambda: duplicates.headline(results("duplicates")["quality"]),
        "duplicates-quality": lambda: duplicates.quality_table(results("duplicates")["quality"]),
        "duplicates-size": lambda: duplicates.size_table(results("duplicates")["size"]),
    },
    "docs/retrievers.md": {
        "quality": lambda: retrieval_quality.quality_table(results("retrieval_quality")),
        "alpha": lambda: retrieval_quality.alpha_table(results("retrieval_quality")),
    },
    "docs/scaling.md": {"journey": lambda: speed_tables.cluster(results("scaling"))},
    "docs/sigma.md": {"knobs": lambda: explanations.knob_table(results("mathematics")["knobs"])},
    "docs/explanation/mathematics.md": {
        "copies": lambda: explanations.copies_table(results("mathematics")["copies"])
    },
    "docs/explanation/relevance.md": {"relevance": lambda: relevance.table(results("relevance"))},
    "docs/explanation/when-not.md": {
        "clean": lambda: quality_tables.clean_table(results("quality")),
        "worst": lambda: quality_tables.worst_table(results("quality")),
    },
}

PICTURES: Mapping[str, tuple[str, Callable[[], str]]] = {
    "natural": ("natural", lambda: quality_tables.picture(natural())),
    "along-sigma": ("natural", lambda: quality_tables.divisor_picture(natural())),
    "along-lambda": ("quality", lambda: explanations.weight_picture(results("quality"))),
    "growth": ("retrieval", lambda: speed_tables.growth_picture(results("retrieval"))),
    "context": ("context", lambda: context.picture(results("context"))),
    "coverage": ("mathematics", lambda: explanations.coverage_picture(results("mathematics")["coverage"])),
    "gains": ("mathematics", lambda: explanations.gains_picture(results("mathematics")["coverage"])),
}


def with_section(text: str, name: str, content: str) -> str:
    """``text`` with what stands between the markers of ``name`` replaced."""
    before, rest = text.split(f"<!-- {name}:begin -->")
    after = rest.split(f"<!-- {name}:end -->")[1]
    return f"{before}<!-- {name}:begin -->\n{content}\n<!-- {name}:end -->{after}"


def fresh(page: str) -> str:
    """A page with its tables made anew."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, make in SECTIONS[page].items():
        text = with_section(text, name, make())
    return text


def stamp(source: str) -> str:
    """The last line of a picture: which results it was made from."""
    digest = hashlib.sha256((RESULTS / f"{source}.json").read_bytes()).hexdigest()
    return f"<!-- made from {source}.json, sha256 {digest} -->\n"


def main() -> None:
    """Write everything."""
    for page in SECTIONS:
        (ROOT / page).write_text(fresh(page), encoding="utf-8")
    for name, (source, draw) in PICTURES.items():
        text = f"{draw().rstrip()}\n{stamp(source)}"
        (IMAGES / f"{name}.svg").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
