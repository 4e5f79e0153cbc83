"""Passages that are alike and all wanted: does the rule for σ take them for copies?

    python benchmarks/alike.py

Four corpora of twelve groups of eight: updates on tickets, variants of a product, years of a statistic,
versions of a function. A question asks about one group and wants its eight passages, or names three groups
and wants any of theirs. What is printed is the share of wanted ones among eight picks of nearest neighbours,
of the rule with vectors alone, and of the rule with the passages' words, means over twelve questions each.
"""

from itertools import product

import numpy as np

from dartboard.embeddings import EmbeddingModel, default_model
from dartboard.selection import select


def listed(words: str) -> list[str]:
    """Words between spaces."""
    return words.split()


SYSTEMS = listed("Berlin Oslo Lagos Quito Hanoi Perth Turin Cairo Lima Kyoto Dakar Riga")
STATES = (
    "was opened by the night shift",
    "was assigned to the network team",
    "waits for a reply of the customer",
    "was reproduced in the laboratory",
    "got a first fix, which failed in tests",
    "got a second fix, now in review",
    "was closed after a week without errors",
    "was opened again: the error came back",
)
TOOLS = listed("drill jacket kettle lamp tent saw desk bicycle camera mixer heater fan")
COLOURS = listed("red blue green black white grey yellow brown")
CROPS = listed("wheat rice maize barley oats rye cotton hops olives grapes tea cocoa")
VERBS = listed("load save merge split rank score index parse embed search filter export")
OPTIONS = listed("timeout retries encoding limit offset format cache threads")


def corpora() -> dict[str, tuple[list[list[str]], list[str], str]]:
    """By name: groups of passages, a question on each of them, and one on several, names left open."""
    tickets = [
        [
            f"Ticket {400 + i}, update {j + 1}: the outage of the {place} gateway {state}."
            for j, state in enumerate(STATES)
        ]
        for i, place in enumerate(SYSTEMS)
    ]
    variants = [
        [
            f"{tool.capitalize()} model {name[0].upper()}{20 + i}, {colour}, article {7000 + 10 * i + j}: "
            f"costs {30 + 3 * i + j} euros and ships in {2 + j} days."
            for j, colour in enumerate(COLOURS)
        ]
        for i, (tool, name) in enumerate(zip(TOOLS, SYSTEMS, strict=True))
    ]
    years = [
        [
            f"In {2016 + j} the region harvested {310 + 17 * i + 5 * j} thousand tonnes of {crop}, on "
            f"{90 + 2 * i + j} thousand hectares."
            for j in range(8)
        ]
        for i, crop in enumerate(CROPS)
    ]
    versions = [
        [
            f"Version 3.{j}: {verb}_records() reads the records, takes the new option {option}, and returns "
            f"how many were done."
            for j, option in enumerate(OPTIONS)
        ]
        for verb in VERBS
    ]
    return {
        "updates on tickets": (
            tickets,
            [f"What happened to the outage of the {place} gateway?" for place in SYSTEMS],
            "What happened to the outages of the {} gateways?",
        ),
        "variants of a product": (
            variants,
            [f"Which colours of the {tool} are there, and what do they cost?" for tool in TOOLS],
            "Which colours of the {} are there, and what do they cost?",
        ),
        "years of a statistic": (
            years,
            [f"How did the harvest of {crop} develop over the years?" for crop in CROPS],
            "How did the harvests of {} develop over the years?",
        ),
        "versions of a function": (
            versions,
            [f"Which options did {verb}_records() take over time?" for verb in VERBS],
            "Which options did {} take over time?",
        ),
    }


NAMES = {
    "updates on tickets": SYSTEMS,
    "variants of a product": TOOLS,
    "years of a statistic": CROPS,
    "versions of a function": [f"{verb}_records()" for verb in VERBS],
}


def shares(model: EmbeddingModel, name: str) -> list[list[float]]:
    """For questions on one group and on three: nearest neighbours, the rule by vectors, and by words."""
    groups, questions, open_question = corpora()[name]
    texts = [text for group in groups for text in group]
    of_group = np.repeat(np.arange(len(groups)), len(groups[0]))
    vectors = model.encode(texts)
    asked: list[list[tuple[str, set[int]]]] = [
        [(question, {at}) for at, question in enumerate(questions)],
        [],
    ]
    for first in range(len(groups)):
        some = [(first + step) % len(groups) for step in (0, 4, 8)]
        listed = ", ".join(NAMES[name][at] for at in some[:2]) + f" and {NAMES[name][some[2]]}"
        asked[1].append((open_question.format(listed), set(some)))
    table = []
    for kind in asked:
        found = np.zeros(3)
        for question, wanted in kind:
            query = model.encode_queries([question])[0]
            ways = (
                np.argsort(-(vectors @ query), kind="stable")[:8],
                select(vectors, query, 8).indices,
                select(vectors, query, 8, texts=texts).indices,
            )
            found += [np.isin(of_group[picks], list(wanted)).mean() for picks in ways]
        table.append((found / len(kind)).tolist())
    return table


def main() -> None:
    model = default_model()
    ways = ("nearest neighbours", "the rule, vectors alone", "the rule, with words")
    print(f"| | asked for | {' | '.join(ways)} |\n|---|---|---|---|---|")
    for name, (row, kind) in product(NAMES, enumerate(("one group", "three groups"))):
        figures = " | ".join(f"{share:.2f}" for share in shares(model, name)[row])
        print(f"| {name} | {kind} | {figures} |")


if __name__ == "__main__":
    main()
