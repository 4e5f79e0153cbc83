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

EXCHANGED = "the set has the passages of the two facets exchanged"
ANSWERS = "the passage does answer, and is labelled a negative"
CAUSES = {
    ("enint-2", "said NO"): "the answer abbreviates a name that the passage writes out",
    ("enint-5", "said YES"): ANSWERS,
    ("enint-31", "said NO"): EXCHANGED,
    ("enint-34", "said NO"): EXCHANGED,
    ("enint-82", "said NO"): EXCHANGED,
    ("enint-82", "said YES"): "a list of films holds both names, as winners or as candidates",
    ("enint-86", "said NO"): EXCHANGED,
    ("enint-93", "said YES"): ANSWERS,
    ("en_fact-19", "said NO"): "the date is glued to a time of day",
    ("en_fact-20", "said YES"): "the right name, said of another year",
    ("en_fact-26", "said YES"): "the right date, with no word of whose",
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
# Mining, measured

Made by `python benchmarks/mining.py` from `benchmarks/results/mining.json`. The data (HotpotQA \
distractor rows, MuSiQue, RGB) is not part of the repository: `DARTBOARD_DATA` names the folder that \
holds it. Intervals are Wilson's, 95 %, where nothing else is said.
"""

KERNELS = """\
## Kernels with a judge that knows

HotpotQA and MuSiQue say which paragraphs a question needs. A simulated judge knows them: it says YES \
only if all are there, and otherwise tells what is missing in words of its own, never by an id. The \
finder starts from the first of them, as a benchmark's target, and searches all paragraphs of the set \
for what the judge misses. A kernel counts as exact if it is the set of supporting paragraphs, no more \
and no fewer.

- *title*: the judge names the title of the missing paragraph. *Common words*: five words of it that are \
not in its title and that at least nine other paragraphs have. *Sub-question*: the question that the \
paragraph answers, in the words of MuSiQue's annotators.
- *Flips*: this share of verdicts is wrong, at random and anew at each asking, over three seeds; a false \
NO asks for a paragraph drawn at random. *Asked once*: without votes. *No target*: the finder starts \
from the question.
- *Calls*: what one case costs, alternatives included. *False alternatives*: how many sets a case were \
taken for a replacement of the kernel; none is one for this judge.
"""

STICKY = """\
Votes mend errors that come and go. A judge that is wrong about a set in the same way each time it is \
asked gains nothing by them, as the row with the same errors each time shows; a second judge, and the \
controls, are there for that.
"""

ANSWERS_HEAD = """\
## The offline judge on RGB

`answers` looks for the known answer strings, by rules for case, accents, articles, numbers and dates. A \
positive passage is judged with the answers of its facet. A negative is judged with the whole question, \
as in mining; by facet is harder, since there half an answer in it counts as an error.
"""

BLIND = """\
## What an offline judge cannot see

It compares letters. On questions that need several paragraphs this shows:
"""

PLAIN = """\
In plain words:

- **It cannot tell one paragraph that holds the answer from the set that lets one know it.** Kernels of \
questions in several steps need a judge that reads, or an executable check. With this judge they come \
out too small, and are still called minimal, because for it they are.
- **It does not see what is said of the answer.** A sentence that denies it is a YES, and so is one that \
names it for another year or another reason.
- **It cannot judge answers that stand nowhere:** yes and no, counts, comparisons, anything that has to \
be concluded.
- **It knows only the spellings that it was given** and those that its rules make. An answer in other \
words is a NO.
- **It cannot be talked into anything.** Stuffed and injected passages move it only where the \
question gives the answer away, which the question without contexts finds out, or where the answer is \
a common word (“it” for Italy).

So it is good for questions whose answer is one string in one document, as API questions are; its \
figures there are above. Where they are not, take a model as a judge, and look at its own false \
positives and false negatives, which every run measures and writes into the data set.
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
            f"- {name}: {plain['exact']:.1%} exact without errors (95 % were asked for) at "
            f"{plain['calls']['mean']:.1f} calls a case; {noisy['exact']:.1%} with 5 % of the verdicts "
            f"flipped (85 % were asked for) at {noisy['calls']['mean']:.1f} calls. Asked once instead "
            f"of by vote: {once['exact']:.1%} at {once['calls']['mean']:.1f} calls."
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
    """Every error, with its cause."""
    rows: dict[tuple[str, str, str, str], int] = {}
    for data in part.values():
        for one in data["errors"]:
            cause = CAUSES.get((one["query"], one["error"]), "not looked into")
            key = (one["query"], one["error"], one["answer"], cause)
            rows[key] = rows.get(key, 0) + 1
    total = sum(rows.values())
    labels = sum(count for key, count in rows.items() if key[3] in (ANSWERS, EXCHANGED))
    head = (
        f"Its {total} errors (negatives with the whole question); {labels} of them are errors of the labels."
    )
    heads = ("question", "error", "looked for", "passages", "why")
    return f"{head}\n\n{_table(heads, ((*key[:3], str(count), key[3]) for key, count in rows.items()))}\n"


def blindness(part: dict[str, Any]) -> str:
    """What letters alone make of several steps."""
    kinds = {
        "whole kernel": "the whole kernel called sufficient (right)",
        "with one left out": "called sufficient, too, with a needed paragraph left out (wrong)",
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
    rows.append(("cases whose question holds the answer, and which are marked", *marked))
    others = (f"{data['controls']['false_positives_of_others']}" for data in part.values())
    rows.append(("false positives of all kinds outside marked cases", *others))
    head = (
        "The same questions through the controls of every run. A positive is the kernel, a negative another "
        "question's paragraph, as it is, with the question's words strewn in, or with a claim that it is "
        "relevant. Where a question holds its answer (“A or B?”), so does a passage that repeats the "
        "question; questions answered by yes or no are not decided:"
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
