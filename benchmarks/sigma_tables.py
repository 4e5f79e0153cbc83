"""The tables of docs/sigma.md, from benchmarks/results/sigma.json."""

from typing import Any

PARTLY, HALF = "a tenth with 20 copies", "edits of half"
NEAREST = {"copies at .97 of the nearest": 1, "edits of the nearest": 1, "edits of the nearest three": 3}
"""Conditions under which only what is nearest to a question has copies, and how much of it."""

KINDS = {"clean": "clean", PARTLY: "some", HALF: "some"} | dict.fromkeys(NEAREST, "answer")
THE_RULE = "one of each group, then that (the rule)"
NAMES = {
    "hotpotqa_dev200": "HotpotQA",
    "musique_train100": "MuSiQue",
    "rgb_en_int": "RGB integration",
    "rgb_en_fact": "RGB fact",
    "scifact": "SciFact",
}
CONDITIONS = ("clean", "copies at .97", "copies at .90", "text edits", PARTLY, HALF, *NEAREST)
BESIDE = {"*median / 4*": "median / 4", "*copies known*": "copies known (not a rule)"}


def shares(found: dict[str, Any], rule: str) -> dict[str, list[float]]:
    """What a rule reaches of what nearest neighbours reach on the clean set, for each kind of corpus."""
    by_kind: dict[str, list[float]] = {"clean": [], "all": [], "some": [], "answer": []}
    for conditions in found.values():
        best = conditions["clean"]["nearest neighbours"]
        for condition, by_rule in conditions.items():
            if rule in by_rule:
                by_kind[KINDS.get(condition, "all")] += [by_rule[rule][k] / best[k] for k in ("@5", "@10")]
    return by_kind


def rules(found: dict[str, Any]) -> str:
    """Mean / worst of each kind of corpus, rule by rule."""
    lines = [
        "| rule | clean | copies of all | copies of some | copies of the answer | cells of 99 % and more |",
        "|---|" + "---|" * 5,
    ]
    for rule in next(iter(found.values()))["clean"]:
        kinds = shares(found, rule).values()
        cells = ", ".join(f"{sum(x >= 0.99 for x in xs)} of {len(xs)}" for xs in kinds)
        figures = " | ".join(f"{sum(xs) / len(xs):.3f} / {min(xs):.3f}" if xs else "" for xs in kinds)
        lines.append(f"| {rule} | {figures} | {cells} |")
    return "\n".join(lines)


def cells(found: dict[str, Any]) -> str:
    """The rule on every set, k = 5 / k = 10, with what is beside it."""
    lines = ["| | " + " | ".join(CONDITIONS) + " |", "|---|" + "---|" * len(CONDITIONS)]
    for name, title in NAMES.items():
        best = found[name]["clean"]["nearest neighbours"]
        for label, rule in {title: THE_RULE, **BESIDE}.items():
            reached = [found[name][condition][rule] for condition in CONDITIONS]
            figures = (f"{one['@5'] / best['@5']:.3f} / {one['@10'] / best['@10']:.3f}" for one in reached)
            lines.append(f"| {label} | " + " | ".join(figures) + " |")
    return "\n".join(lines)
