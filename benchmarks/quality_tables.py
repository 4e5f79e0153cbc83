"""benchmarks/results/quality.json as tables and as the numbers of the redundancy plot."""

from collections.abc import Iterator, Mapping
from math import sqrt
from typing import Any

from benchmarks.natural_tables import best_bold
from dartboard.evaluation.summary import BOUNDS, family, short

LEVEL = 0.05
DEPTHS = ("@5", "@10")
REFERENCE = "dartboard"

Found = Mapping[str, Mapping[str, Any]]


def conditions(found: Found) -> list[str]:
    """All conditions that any set was measured under, in order."""
    return list(dict.fromkeys(condition for by_condition in found.values() for condition in by_condition))


def systems(found: Found) -> list[str]:
    """All systems, in order."""
    cells = (cell for by_condition in found.values() for cell in by_condition.values())
    return list(dict.fromkeys(system for cell in cells for system in cell["systems"]))


def shares(found: Found, system: str, condition: str) -> dict[str, float] | None:
    """The mean over data sets of a system's share, with a 95 % interval.

    Sets are independent of each other: the variance of their mean is the sum of theirs over their number
    squared.
    """
    cells = [by[condition]["systems"][system]["share"] for by in found.values() if condition in by]
    if not cells:
        return None
    mean = sum(cell["mean"] for cell in cells) / len(cells)
    half = 1.96 * sqrt(sum(cell["sd"] ** 2 for cell in cells)) / len(cells)
    return {"mean": mean, "low": mean - half, "high": mean + half, "sets": len(cells)}


def worst(found: Found, system: str) -> float:
    """The lowest share over all sets, conditions and depths."""
    lowest = []
    for by_condition in found.values():
        base = by_condition["clean"]["systems"]["cosine"]
        for cell in by_condition.values():
            lowest += [cell["systems"][system][k]["mean"] / base[k]["mean"] for k in DEPTHS]
    return min(lowest)


def share_table(found: Found) -> str:
    """Markdown: shares of each system under each condition with intervals, and the lowest; the best bold."""
    heads = [f"{condition} ({_sets(found, condition)})" for condition in conditions(found)]
    lines = ["| | " + " | ".join([*heads, "lowest of all"]) + " |", "|---" * (len(heads) + 2) + "|"]
    names = [system for system in systems(found) if family(system) not in BOUNDS]
    columns = [
        [_interval(shares(found, name, condition)) for name in names] for condition in conditions(found)
    ]
    columns.append([f"{worst(found, name):.3f}" for name in names])
    rows = zip(*(best_bold(column) for column in columns), strict=True)
    lines += [f"| {name} | " + " | ".join(cells) + " |" for name, cells in zip(names, rows, strict=True)]
    return "\n".join(lines)


def hindsight_table(found: Found) -> str:
    """Markdown: shares on every set and condition, beside the best setting of each rival."""
    lines = [
        "| | | cosine | best MMR | best near-duplicate filter | dartboard |",
        "|---|---|---|---|---|---|",
    ]
    for name, by_condition in found.items():
        for condition, cell in by_condition.items():
            share = {system: scores["share"]["mean"] for system, scores in cell["systems"].items()}
            rivals = (best(share, "mmr"), best(share, "dedup"))
            values = [f"{share[rival]:.3f} ({rival.split('-')[1]})" for rival in rivals]
            cells = best_bold([f"{share['cosine']:.3f}", *values, f"{share[REFERENCE]:.3f}"])
            lines.append("| " + " | ".join([name, condition, *cells]) + " |")
    return "\n".join(lines)


def best(share: Mapping[str, float], kind: str) -> str:
    """The system of a family with the largest share; of equal ones the first."""
    return max((system for system in share if family(system) == kind), key=lambda system: share[system])


def mark(score: Mapping[str, float]) -> str:
    """``▲`` significantly better than Dartboard, ``▼`` worse, nothing where chance would do."""
    if score.get("p", 1.0) >= LEVEL:
        return ""
    return " ▲" if score["difference"] > 0 else " ▼"


def caption(found: Found) -> str:
    """What the redundancy plot shows."""
    names = conditions(found)
    ours = {condition: shares(found, REFERENCE, condition) for condition in names}
    nearest = {condition: shares(found, "cosine", condition) for condition in names}
    told = "; ".join(
        f"{condition}: {ours[condition]['mean']:.2f} ({nearest[condition]['mean']:.2f})"
        for condition in names
    )
    edited = sum("text edits" in by_condition for by_condition in found.values())
    sets = f"{len(found)} data sets" + (f" ({edited} with text edits)" if edited < len(found) else "")
    lost = 1 - ours["clean"]["mean"]
    price = (
        f"On clean corpora it costs {lost:.1%} of recall."
        if lost > 0
        else "On clean corpora it costs nothing."
    )
    return (
        f"*Means over {sets} with 95 % intervals. Dartboard, and in brackets nearest neighbours (`cosine`): "
        f"{told}. {price}*"
    )


def missing(found: Found) -> list[str]:
    """Sets and conditions that were not measured, in words."""
    return [
        f"{name} with {condition}"
        for name, by_condition in found.items()
        for condition in conditions(found)
        if condition not in by_condition
    ]


def better_than_ours(found: Found) -> list[str]:
    """Where something that a person could use is significantly better than Dartboard, in words."""
    said = []
    for name, condition, depth, system, score, ours in _scores(found):
        if score.get("p", 1.0) < LEVEL and score["difference"] > 0 and family(system) not in BOUNDS:
            values = f"{short(score['mean'])} against {short(ours['mean'])}"
            said.append(f"{name}, {condition}, recall{depth}: {system} ({values}, p = {score['p']:.3f})")
    return said


def tally(found: Found) -> dict[str, tuple[int, int, int]]:
    """For each system: on how many sets, conditions and depths Dartboard is better, no different, worse."""
    counted: dict[str, list[int]] = {}
    for _, _, _, system, score, _ in _scores(found):
        row = counted.setdefault(system, [0, 0, 0])
        row[{"": 1, " ▼": 0, " ▲": 2}[mark(score)]] += 1
    return {system: (row[0], row[1], row[2]) for system, row in counted.items()}


def _scores(found: Found) -> Iterator[tuple[str, str, str, str, Any, Any]]:
    for name, by_condition in found.items():
        for condition, cell in by_condition.items():
            for depth in DEPTHS:
                ours = cell["systems"][REFERENCE][depth]
                for system, scores in cell["systems"].items():
                    if system != REFERENCE:
                        yield name, condition, depth, system, scores[depth], ours


def _sets(found: Found, condition: str) -> str:
    count = sum(condition in by_condition for by_condition in found.values())
    return f"{count} sets" if count > 1 else "1 set"


def _interval(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "–"
    return f"{found['mean']:.3f} ± {found['high'] - found['mean']:.3f}"
