"""Turn the benchmarks' JSON into the tables, pages and pictures of the documentation.

python benchmarks/tables.py         # writes the README, pages and pictures of docs/
"""

import hashlib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from benchmarks import (  # noqa: E402
    answers,
    comparison_tables,
    context,
    copies,
    decision_tables,
    duplicates,
    encoders,
    explanations,
    hostile_memory,
    indexing,
    late_projection,
    load_tables,
    natural_tables,
    quality_pages,
    questions,
    relevance,
    retrieval_tables,
    trained_scorers,
)

RESULTS = ROOT / "benchmarks" / "results"


def selection_table(report: dict[str, Any]) -> str:
    """Markdown: milliseconds, and in brackets how many times dartboard's own."""
    rows = report["single"]
    heads = [f"n={row['n']}, k={row['k']}" for row in rows]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (len(rows) + 1) + "|"]
    for name in rows[0]["ms"]:
        cells = [
            f"{_three(row['ms'][name])} ms ({_three(row['times_dartboard'][name])}×)"
            if name in row["ms"]
            else ""
            for row in rows
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    many = report["many"]
    share = many["ms"]["select_many"] / many["ms"]["their sgemm"]
    lines += [
        "",
        f"{many['queries']} queries of {many['n']} candidates in one call (k={many['k']}): "
        f"{_three(many['ms']['select_many'])} ms, {share:.1f} times the matrix products alone.",
    ]
    searched = report.get("search", {})
    if "dense" in searched:
        lines += [
            "",
            "The select stage of `Engine.search`, 10 of 100 candidates from "
            f"{searched['chunks']:,} sections of documentation ({searched['documents']}): "
            f"{_three(searched['dense']['median_ms'])} ms with the dense retriever and "
            f"{_three(searched['hybrid']['median_ms'])} ms with the hybrid one, at the median of "
            f"{searched['queries']} queries.",
        ]
    return "\n".join(lines)


def journey_table(found: dict[str, Any]) -> str:
    """Markdown: what the way to a cluster costs where it cannot pay."""
    there, index, asked = found["list"], found["index"], found["eval"]
    rows = {
        "joining the cluster (starts about ten processes)": f"{found['join_seconds']:.0f} s",
        "loading and checking the model": f"{found['look_seconds']:.1f} s",
        "round trip of an empty task": f"{found['piece_ms']:.1f} ms",
        f"{there['passages']} passages encoded": _instead(there["there_ms"] / 1e3, there["here_ms"] / 1e3),
        f"{index['passages']} files indexed": _instead(index["there_seconds"], index["here_seconds"]),
        "a quick evaluation": _instead(asked["there_seconds"], asked["here_seconds"]),
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {what} | {cost} |" for what, cost in rows.items())])


def _instead(there: float, here: float) -> str:
    return f"{there:.2f} s instead of {here:.2f}"


def with_section(text: str, name: str, content: str) -> str:
    """``text`` with what stands between the markers of ``name`` replaced."""
    before, rest = text.split(f"<!-- {name}:begin -->")
    after = rest.split(f"<!-- {name}:end -->")[1]
    return f"{before}<!-- {name}:begin -->\n{content}\n<!-- {name}:end -->{after}"


def results(name: str) -> Any:
    """A benchmark's results."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def fresh_readme() -> str:
    """The README with its tables made anew."""
    quality, selection = results("quality"), results("selection")
    sections = {
        "numbers": natural_tables.three_numbers(results("natural"), selection),
        "compared": comparison_tables.at_a_glance(quality, selection),
    }
    text = (ROOT / "README.md").read_text()
    for name, content in sections.items():
        text = with_section(text, name, content)
    return text


def fresh_decisions() -> str:
    """docs/decisions.md with its tables made anew."""
    text = (ROOT / "docs" / "decisions.md").read_text()
    for name, content in decision_tables.sections(results("decisions")).items():
        text = with_section(text, name, content)
    return text


def fresh_sections() -> Mapping[Path, str]:
    """Pages of docs/ with the tables between their markers made anew."""
    quality, known = results("quality"), results("mathematics")
    selection, retrieval, natural = results("selection"), results("retrieval"), results("natural")
    found = results("duplicates")
    by_encoder = encoders.with_natural(results("encoders"), natural)
    pages = {
        "benchmarks/index.md": {
            "natural": natural_tables.headline(natural),
            "shares": natural_tables.short_table(natural),
            "compared": comparison_tables.at_a_glance(quality, selection),
            "headlines": comparison_tables.headlines(selection, retrieval, results("load")),
        },
        "benchmarks/failed-experiments.md": {
            "intent": natural_tables.intent_table(natural_tables.default(natural)),
            "said": natural_tables.intent(natural_tables.default(natural)),
            "projection": late_projection.table(results("late_projection")),
            "pairs": trained_scorers.table(results("trained_scorers"), "pairs"),
            "terms": trained_scorers.table(results("trained_scorers"), "terms"),
        },
        "benchmarks/encoders.md": {
            "clean": encoders.share_table(by_encoder, "clean"),
            "redundant": encoders.share_table(by_encoder, "redundant"),
            "sigmas": encoders.sigma_table(by_encoder),
            "sets": encoders.set_tables(by_encoder),
        },
        "benchmarks/answers.md": {
            "asked": answers.headline(results("answers")),
            "answers": answers.table(results("answers")),
            "verdicts": answers.verdicts(results("answers")),
            "sets": answers.set_table(results("answers")),
        },
        "benchmarks/questions.md": {
            "questions": questions.table(results("questions")),
            "copies": copies.table(results("copies")["retrievers"]),
        },
        "how-to/context.md": {
            "answers": context.table(results("context")),
            "against": context.against(results("context")),
            "sections": context.sections_table(results("context")["sections"]),
            "spread": context.spread_table(results("context")["spread"]),
        },
        "how-to/duplicates.md": {
            "duplicates-answer": duplicates.headline(found["quality"]),
            "duplicates-quality": duplicates.quality_table(found["quality"]),
            "duplicates-size": duplicates.size_table(found["size"]),
        },
        "how-to/agents.md": {"questions": questions.headline(results("questions"))},
        "comparison.md": {
            "numbers": comparison_tables.in_numbers(quality, selection),
            "selection": selection_table(selection),
        },
        "security.md": {"memory": hostile_memory.table(results("hostile_memory"))},
        "sigma.md": {
            "knobs": explanations.knob_table(known["knobs"]),
            "encoders": encoders.share_table(by_encoder, "all"),
        },
        "scaling.md": {"journey": journey_table(results("scaling"))},
        "explanation/mathematics.md": {"copies": explanations.copies_table(known["copies"])},
        "explanation/relevance.md": {"relevance": relevance.table(results("relevance"))},
        "explanation/when-not.md": {
            "clean": explanations.clean_table(quality),
            "worst": explanations.worst_table(quality),
        },
    }
    made = {}
    for name, sections in pages.items():
        path = ROOT / "docs" / name
        text = path.read_text()
        for section, content in sections.items():
            text = with_section(text, section, content)
        made[path] = text
    return made


def documents() -> Mapping[Path, str]:
    """The documents that are text, as they should be."""
    pages = ROOT / "docs" / "benchmarks"
    return {
        **fresh_sections(),
        ROOT / "README.md": fresh_readme(),
        ROOT / "docs" / "decisions.md": fresh_decisions(),
        pages / "retrieval.md": retrieval_tables.page(
            results("retrieval"), indexing.section(results("indexing"))
        ),
        pages / "natural.md": natural_tables.page(results("natural"), results("held_out")),
        pages / "natural-tables.md": natural_tables.tables_page(results("natural"), results("held_out")),
        pages / "quality.md": quality_pages.markdown_page(results("quality")),
        pages / "service.md": load_tables.page(results("load"), results("request"), results("slider")),
    }


def pictures() -> Mapping[Path, str]:
    """The documents with pictures; versions of the plotting library may draw them a little differently."""
    found, made_from = results("quality"), stamp("quality")
    images = ROOT / "docs" / "images"
    return {
        ROOT / "docs" / "benchmarks" / "quality.html": quality_pages.html_page(found) + made_from,
        ROOT / "docs" / "images" / "redundancy.svg": quality_pages.readme_picture(found) + made_from,
        images / "context.svg": context.picture(results("context")) + "\n" + stamp("context"),
        images / "natural.svg": natural_tables.picture(results("natural")) + stamp("natural"),
        **{images / f"{name}.svg": text for name, text in _explained().items()},
    }


def _explained() -> dict[str, str]:
    known, quality = results("mathematics"), results("quality")
    knobs = explanations.knob_pictures(known["knobs"])
    made = {
        "coverage": (explanations.coverage_picture(known["coverage"]), "mathematics"),
        "gains": (explanations.gains_picture(known["coverage"]), "mathematics"),
        "along-weights": (knobs["weights"], "mathematics"),
        "along-factors": (knobs["factors"], "mathematics"),
        "along-lambda": (explanations.weight_picture(quality), "quality"),
        "along-sigma": (natural_tables.divisor_picture(results("natural")), "natural"),
    }
    return {name: f"{picture}\n{stamp(source)}" for name, (picture, source) in made.items()}


def stamp(name: str) -> str:
    """The last line of a document with pictures: which results it was made from."""
    digest = hashlib.sha256((RESULTS / f"{name}.json").read_bytes()).hexdigest()
    return f"<!-- made from {name}.json, sha256 {digest} -->\n"


def _three(value: float) -> str:
    """Three significant digits, no exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


if __name__ == "__main__":
    for path, content in {**documents(), **pictures()}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
