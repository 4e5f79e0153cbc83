# ruff: noqa: E501 - prose
"""Turn mining.json into docs/benchmarks/mining.md.

python -m benchmarks.mining_tables
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.mining_run_tables import adk, faults

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results" / "mining.json"
PAGE = ROOT / "docs" / "benchmarks" / "mining.md"

EXCHANGED = "label error: facets exchanged"
ANSWERS = "label error: the passage answers"
CAUSES = {
    ("enint-2", "said NO"): "the answer abbreviates a name that the passage writes out",
    ("enint-5", "said YES"): ANSWERS,
    ("enint-31", "said NO"): EXCHANGED,
    ("enint-34", "said NO"): EXCHANGED,
    ("enint-82", "said NO"): EXCHANGED,
    ("enint-82", "said YES"): "a list of films holds both names, as winners or as candidates",
    ("enint-86", "said NO"): EXCHANGED,
    ("enint-93", "said YES"): ANSWERS,
    ("en_fact-19", "said NO"): "the date is joined to a time of day",
    ("en_fact-20", "said YES"): "the right name, said of another year",
    ("en_fact-26", "said YES"): "the right date, without the event",
    ("en_fact-43", "said YES"): ANSWERS,
    ("en_fact-51", "said YES"): ANSWERS,
    ("en_fact-52", "said YES"): ANSWERS,
    ("en_fact-72", "said YES"): ANSWERS,
    ("en_fact-75", "said YES"): ANSWERS,
    ("en_fact-86", "said YES"): "the right name, in a sentence about a birth",
    ("en_fact-88", "said YES"): "the right date, of another event",
}
"""Read from the passages by a person."""

HEAD = """\
# Mining

This page shows how exact mined labels are, what the offline judge misses, and how mining handles a failing \
endpoint (`benchmarks/mining.py`). Intervals are 95 % Wilson intervals unless noted.
"""

KERNELS = """\
## Kernels with a judge that knows the answer

HotpotQA and MuSiQue mark the paragraphs that a question needs. A simulated judge says YES if all are present; \
otherwise it names what is missing, by *title*, *common words* or *sub-question*. A kernel (the \
minimal set that answers) is exact if it equals the marked paragraphs.

- *flips*: share of random wrong verdicts, over three seeds. *asked once*: no votes. *no target*: the search starts \
from the question.
- *calls*: per case, with alternatives. *false alternatives*: wrong replacements per case.
"""

STICKY = """\
Votes correct random errors, not repeated ones. Use a second judge for those.
"""

ANSWERS_HEAD = """\
## The offline judge on RGB

`answers` searches for the known answer strings. Positives are judged by facet, negatives with the whole question, as \
in mining.
"""

BLIND = """\
## What an offline judge cannot see

Questions that need several paragraphs:
"""

PLAIN = """\
- Kernels of multi-step questions are too small: one paragraph with the answer string counts as sufficient.
- A sentence that denies the answer, or names it for another year, is a YES.
- It cannot judge yes and no, counts, comparisons, or other spellings than its rules produce.
- Prompt injection works only where the question contains the answer (such cases are marked) or the answer is a \
common word ("it" for Italy).

Use it where the answer is one string in one document, as in API questions; otherwise a model or an executable check.
"""


def page(found: dict[str, Any]) -> str:
    """The whole page."""
    parts = [
        HEAD,
        KERNELS,
        *(kernels(name, part) for name, part in found["a"].items()),
        verdict_on_kernels(found["a"]),
        ANSWERS_HEAD,
        answers(found["b"]),
        errors(found["b"]),
        BLIND,
        blindness(found["c"]),
        controls(found["c"]),
        PLAIN,
        faults(found["d"]),
        adk(found["e"]),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def kernels(name: str, part: dict[str, Any]) -> str:
    """One data set's settings."""
    sizes = ", ".join(f"{count} of {size}" for size, count in part["sizes"].items())
    heads = ("judge", "flips", "exact kernels", "calls: mean / median / 95 % / most", "false alternatives")
    rows = [
        (
            _setting(row),
            f"{row['flips']:.0%}",
            f"{row['exact']:.1%} ({row['low']:.1%} to {row['high']:.1%})",
            "{mean:.1f} / {median:.0f} / {p95} / {most}".format(**row["calls"]),
            f"{row['false_alternatives']:.3f}",
        )
        for row in part["rows"]
    ]
    head = f"**{name}**: {part['cases']} questions, kernels {sizes} paragraphs, among {part['paragraphs']:,}."
    return f"{head}\n\n{_table(heads, rows)}\n"


def verdict_on_kernels(part: dict[str, Any]) -> str:
    """What was asked for, and what votes are worth."""
    lines = []
    for name, data in part.items():
        plain, noisy = row_of(data, flips=0.0), row_of(data, flips=0.05)
        once = row_of(data, flips=0.05, votes=1)
        lines.append(
            f"- {name}: {plain['exact']:.1%} exact without errors (target 95 %), {noisy['exact']:.1%} with 5 % flips "
            f"(target 85 %; without votes {once['exact']:.1%})."
        )
    lines += ["", STICKY]
    return "\n".join(lines) + "\n"


def row_of(
    data: dict[str, Any],
    *,
    flips: float,
    votes: int | None = None,
    wording: str = "title",
    target: bool = True,
    sticky: bool = False,
) -> dict[str, Any]:
    """The row of a setting."""
    wanted = {"flips": flips, "votes": votes, "wording": wording, "target": target, "sticky": sticky}
    found: dict[str, Any] = next(
        row for row in data["rows"] if all(row[key] == value for key, value in wanted.items())
    )
    return found


def answers(part: dict[str, Any]) -> str:
    """Accuracy by kind of passage."""
    heads = ("", *part)
    kinds = {
        "accuracy": "accuracy",
        "positives": "positives called YES",
        "negatives": "negatives called NO",
        "accuracy by facet": "accuracy, negatives by facet",
        "negatives by facet": "negatives called NO, by facet",
        "sets": "all positives together called YES",
        "wrong facts": "passages with a wrong fact called NO",
    }
    rows = [(shown, *(_share(data[kind]) for data in part.values())) for kind, shown in kinds.items()]
    return f"{_table(heads, rows)}\n"


def errors(part: dict[str, Any]) -> str:
    """Every error by its cause."""
    counts: dict[tuple[str, str], int] = {}
    questions: dict[tuple[str, str], list[str]] = {}
    for data in part.values():
        for one in data["errors"]:
            key = (one["error"], CAUSES.get((one["query"], one["error"]), "not looked into"))
            counts[key] = counts.get(key, 0) + 1
            if one["query"] not in questions.setdefault(key, []):
                questions[key].append(one["query"])
    labels = sum(count for key, count in counts.items() if key[1] in (ANSWERS, EXCHANGED))
    head = f"It makes {sum(counts.values())} errors; {labels} of them are label errors."
    rows = sorted(
        ((*key, str(count), ", ".join(questions[key])) for key, count in counts.items()),
        key=lambda row: (-int(row[2]), row),
    )
    return f"{head}\n\n{_table(('error', 'why', 'passages', 'questions'), rows)}\n"


def blindness(part: dict[str, Any]) -> str:
    """What letters alone make of several steps."""
    kinds = {
        "whole kernel": "the whole kernel called sufficient (right)",
        "with one left out": "called sufficient with a needed paragraph left out (wrong)",
        "exact kernels": "exact kernels found with it",
        "strangers": "paragraphs outside the kernel called sufficient alone (wrong)",
        "denied": "“the answer is not …” called sufficient (wrong)",
    }
    rows = [(shown, *(_share(data[kind]) for data in part.values())) for kind, shown in kinds.items()]
    rows.append(("questions answered by yes or no", *(f"{data['yes or no']}" for data in part.values())))
    return f"{_table(('', *part), rows)}\n"


def controls(part: dict[str, Any]) -> str:
    """The run's own controls, as they go into a data set."""
    kinds = ("positive", "negative", "stuffed", "injected")
    rows = []
    for kind in kinds:
        cells = []
        for data in part.values():
            rate = data["controls"]["by_kind"][kind]
            interval = f"{rate['low']:.1%} to {rate['high']:.1%}"
            share = f"{rate['errors'] / rate['decided']:.1%}; {interval}" if rate["decided"] else "none asked"
            cells.append(f"{rate['errors']} of {rate['decided']} ({share})")
        rows.append((f"{kind}: {'NO' if kind == 'positive' else 'YES'}, wrongly", *cells))
    marked = (f"{data['controls']['answered_without_context']}" for data in part.values())
    rows.append(("marked cases: the question contains the answer", *marked))
    others = (f"{data['controls']['false_positives_of_others']}" for data in part.values())
    rows.append(("false positives outside marked cases", *others))
    head = (
        "Controls on the same questions, without yes/no questions. A positive is the kernel. A negative is another "
        "question's paragraph: unchanged, stuffed with the question's words, or with an injected claim of "
        "relevance."
    )
    return f"{head}\n\n{_table(('', *part), rows)}\n"


def fresh_page() -> str:
    """The page from the results as they are."""
    return page(json.loads(RESULTS.read_text(encoding="utf-8")))


def _setting(row: dict[str, Any]) -> str:
    votes = ", asked once" if row["votes"] == 1 else ""
    sticky = ", the same errors each time" if row["sticky"] else ""
    return f"{row['wording']}{votes}{sticky}{'' if row['target'] else ', no target'}"


def _share(value: dict[str, Any] | None) -> str:
    if value is None:
        return ""
    return f"{value['share']:.1%} of {value['of']:,} ({value['low']:.1%} to {value['high']:.1%})"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    heads = list(heads)
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


if __name__ == "__main__":
    PAGE.write_text(fresh_page(), encoding="utf-8")
