"""Is a mined data set what it claims to be? Every problem is listed with its line, not the first alone.

Errors: what breaks the schema, keys that nobody knows, a file that was cut short, what occurs twice, a
positive whose evidence does not stand in its text, a kernel that is not among the positives, and control
rates that are missing or do not fit their counts or the pairs, and a judge that failed its controls.
Warnings: what can be meant, but is worth a look, such as a question without a positive context, or a change
since the file was written.

By hand, and not by pydantic: that knows no lines of a file, and most of this compares parts of it with each
other.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from dartboard.datasets.mined import END, check_end
from dartboard.datasets.records import need_file
from dartboard.datasets.safe_yaml import (
    Fields,
    fields_of,
    odd_character,
    place_of,
    read_fields,
    refused_id,
    string_of,
)
from dartboard.errors import DatasetError
from dartboard.mining.agreement import Agreement
from dartboard.mining.controls import KINDS, NEGATIVES, ControlError, Rate
from dartboard.mining.dataset import STATUSES, JudgedContext, Kernel
from dartboard.mining.dataset_writer import FORMAT, VERSION, digest_of
from dartboard.mining.judges.evidence import stands_in

Level = Literal["error", "warning"]

RATES = {"false_positive": NEGATIVES, "false_negative": ("positive",)}
DOUBTFUL = 0.1
"""A judge that is wrong more often than this on its controls is worth a warning."""

_LISTS = {"positive_ctxs": "YES", "negative_ctxs": "NO", "unsure_ctxs": "UNSURE"}
_COUNTS = ("errors", "decided", "unsure")
_SHARE, _MANY = (0, 1), (0, 1e9)
_ROUNDING = 1e-6


def _names(of: type) -> list[str]:
    return [one.name for one in fields(of)]


# The keys that each part of the file may have.
_TOP_KEYS = [
    "format",
    "version",
    "verified",
    "corpus",
    "judge",
    "controls",
    "agreement",
    "settings",
    "pairs",
    END,
]
_PART_KEYS = {
    "corpus": ["name", "fingerprint"],
    "judge": ["name", "prompt_version"],
    "controls": [
        *("judge", "seed", "cases", *RATES, "by_kind", "answered_without_context"),
        *("insufficient_targets", "errors"),
    ],
    "agreement": [*_names(Agreement), "shared", "most_apart"],
    END: ["pairs", "sha256"],
}
_RATE_KEYS = ["rate", *_names(Rate)]
_ERROR_KEYS = _names(ControlError)
_PAIR_KEYS = [
    *("id", "query", "kind", "answers", "facets", "answered_without_context", *_LISTS),
    *("kernel", "kernel_status", "kernel_source", "alternatives", "kernels"),
]
_CONTEXT_KEYS = _names(JudgedContext)
_KERNEL_KEYS = [name for name in _names(Kernel) if name != "alternatives"]

Params = ParamSpec("Params")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something wrong, or odd, at a line of the file."""

    line: int
    level: Level
    message: str
    pair: str = ""


@dataclass(slots=True)
class ProblemReport:
    """Problems so far, and what was seen of the whole file."""

    path: Path
    problems: list[Problem] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    pair: str = ""

    def add(self, node: Any, message: str, level: Level = "error") -> None:
        """A problem where a node begins."""
        self.problems.append(Problem(place_of(self.path, node).line, level, message, self.pair))

    def tried(
        self, read: Callable[Params, Result], *args: Params.args, **more: Params.kwargs
    ) -> Result | None:
        """What ``read`` gives; its complaint becomes a problem."""
        try:
            return read(*args, **more)
        except DatasetError as error:
            told = re.fullmatch(re.escape(str(self.path)) + r", line (\d+): (.*)", str(error), re.DOTALL)
            line, message = (int(told[1]), told[2]) if told else (1, str(error))
            self.problems.append(Problem(line, "error", message, self.pair))
            return None

    def unknown(self, fields: Fields, known: Sequence[str], what: str) -> None:
        """An error for each key that nobody knows, with the one that was meant, if it is near."""
        for key, node in fields.keys.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                advice = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                self.add(node, f"unknown key {key!r}{what}: {advice}")

    def mapping(self, fields: Fields, key: str) -> Fields | None:
        """The mapping under a key, if it is there and is one."""
        return self.tried(fields.mapping, key) if fields.has(key) else None

    def numbers(self, fields: Fields, ranges: Mapping[str, tuple[float, float]]) -> dict[str, float]:
        """The numbers under keys that are there, if they are numbers within their ranges."""
        found = {
            key: self.tried(fields.number, key, 0.0, least=least, most=most)
            for key, (least, most) in ranges.items()
            if fields.has(key)
        }
        return {key: value for key, value in found.items() if value is not None}


def validate(path: str | Path) -> list[Problem]:
    """All problems of a data set's file, by line; an empty list where there are none.

    Raises:
        DatasetError: there is no such file.
    """
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    found = ProblemReport(file)
    root = found.tried(read_fields, file, "'pairs'")
    if root is not None:
        _check_head(root, found)
        _check_pairs(root, found)
    return sorted(found.problems)


def _check_head(root: Fields, found: ProblemReport) -> None:
    """All but the pairs themselves."""
    found.unknown(root, _TOP_KEYS, "")
    for name, keys in _PART_KEYS.items():
        if (part := found.mapping(root, name)) is not None:
            found.unknown(part, keys, f" in {name!r}")
    _check_format(root, found)
    if root.has("verified") and not _flag(root, "verified", found):
        message = "the judge failed its controls: these labels are not verified, take another judge"
        found.add(root.entries["verified"], message)
    _check_controls(root, found)
    _check_agreement(root, found)


def _check_format(root: Fields, found: ProblemReport) -> None:
    if "format" not in root.entries:
        found.add(root.node, "'format' is missing: this file was not written by dartboard mine", "warning")
        return
    if found.tried(root.string, "format") not in (None, FORMAT):
        found.add(root.entries["format"], f"'format' must be {FORMAT!r}")
    if not root.has("version"):
        found.add(root.node, "'version' is missing")
        return
    version = found.tried(root.number, "version", 0, least=1, most=VERSION)
    if version is None:
        return
    before = len(found.problems)
    found.tried(check_end, root)
    if not root.has(END) and len(found.problems) == before:
        message = f"version {version:.0f} has no end: nobody can tell whether this file was cut short"
        found.add(root.entries["version"], message, "warning")
    elif len(found.problems) == before:
        said = root.mapping(END).string("sha256")
        if said != digest_of(found.path.read_text(encoding="utf-8")):
            found.add(root.entries[END], "the file was changed after it was written", "warning")


def _check_controls(root: Fields, found: ProblemReport) -> None:
    controls = found.mapping(root, "controls")
    if controls is None:
        if "controls" not in root.entries:
            found.add(root.node, "'controls' are missing: nobody knows how often the judge is wrong")
        return
    pairs = root.entries.get("pairs")
    if controls.has("cases") and pairs is not None and pairs.id == "sequence":
        cases = found.numbers(controls, {"cases": _MANY}).get("cases")
        if cases is not None and cases != len(pairs.value):
            message = f"'controls' are of {cases:.0f} cases, and the file has {len(pairs.value)} pairs"
            found.add(controls.keys["cases"], message)
    kinds = found.mapping(controls, "by_kind")
    if kinds is not None:
        found.unknown(kinds, [kind for kind in KINDS if kind != "zero"], " in 'by_kind'")
    for node in found.tried(controls.items, "errors") or ():
        if (error := found.tried(fields_of, found.path, node, "each of 'errors'")) is not None:
            found.unknown(error, _ERROR_KEYS, " in an error")
    rates: dict[str, dict[str, float]] = {}
    for kind in kinds.entries if kinds is not None else ():
        if (rate := found.mapping(kinds, kind)) is not None:  # type: ignore[arg-type]  # not None here
            rates[kind] = _check_rate(rate, f"by_kind.{kind}", found)
    for name, parts in RATES.items():
        if (rate := found.mapping(controls, name)) is not None:
            values = _check_rate(rate, name, found)
            for key in _COUNTS:
                counted = [rates[kind][key] for kind in parts if key in rates.get(kind, {})]
                if key in values and len(counted) == len(parts) and values[key] != sum(counted):
                    message = f"{name!r} has {values[key]:.0f} {key}, its kinds together {sum(counted):.0f}"
                    found.add(rate.entries[key], message)
        elif name not in controls.entries:
            found.add(controls.node, f"'controls' lack {name!r}: every run measures it")


def _check_rate(rate: Fields, name: str, found: ProblemReport) -> dict[str, float]:
    """The numbers of a rate, which must fit each other; where nothing was decided there is no rate."""
    found.unknown(rate, _RATE_KEYS, f" in {name!r}")
    ranges = dict.fromkeys(("low", "rate", "high"), _SHARE) | dict.fromkeys(_COUNTS, _MANY)
    values = found.numbers(rate, ranges)
    if any(rate.has(key) for key in ranges.keys() - values.keys()):
        return values
    decided = values.get("decided")
    needed = ("low", "high") if decided == 0 else ("low", "rate", "high")
    if lacking := [key for key in needed if key not in values]:
        found.add(rate.node, f"{name!r} lacks {lacking[0]!r}")
        return values
    if decided == 0:
        return values
    if not values["low"] <= values["rate"] <= values["high"]:
        found.add(rate.node, f"{name!r}: the rate must lie within its interval")
    errors, share = values.get("errors"), values["rate"]
    if (
        errors is not None
        and decided is not None
        and (errors > decided or abs(errors / decided - share) > _ROUNDING)
    ):
        message = f"{name!r}: {errors:.0f} errors of {decided:.0f} are not a rate of {share:g}"
        found.add(rate.entries["rate"], message)
    if share > DOUBTFUL and name in RATES:
        found.add(rate.node, f"{name!r} is {share:.0%}: do not trust these labels blindly", "warning")
    return values


def _check_agreement(root: Fields, found: ProblemReport) -> None:
    """Shares and kappa in their ranges; a bootstrap's interval mostly holds its kappa, and must be one."""
    agreement = found.mapping(root, "agreement")
    if agreement is None:
        return
    ranges = {"observed": _SHARE, "most_apart": _SHARE} | dict.fromkeys(("kappa", "low", "high"), (-1, 1))
    values = found.numbers(agreement, ranges)
    low, high = values.get("low"), values.get("high")
    if low is None or high is None:
        return
    if low > high:
        found.add(agreement.node, "'agreement': the interval ends before it begins")
    elif "kappa" in values and not low <= values["kappa"] <= high:
        found.add(agreement.node, "'agreement': kappa lies outside of its interval", "warning")


def _check_pairs(root: Fields, found: ProblemReport) -> None:
    if "pairs" not in root.entries:
        found.add(root.node, "'pairs' is missing: the file must have a list of them at its top")
        return
    nodes = found.tried(root.items, "pairs")
    if nodes == []:
        found.add(root.entries["pairs"], "there are no pairs", "warning")
    for node in nodes or ():
        found.pair = ""
        pair = found.tried(fields_of, found.path, node, "each of 'pairs'")
        if pair is not None:
            _check_pair(pair, found)


def _check_pair(pair: Fields, found: ProblemReport) -> None:
    identity = found.tried(pair.string, "id")
    if identity is not None:
        found.pair = identity
        if (odd := odd_character(identity)) is not None:
            found.add(pair.entries["id"], refused_id(identity, odd))
        first = found.ids.setdefault(identity, pair.place.line)
        if first != pair.place.line:
            found.add(pair.entries["id"], f"id {identity!r} occurs twice, first at line {first}")
    found.tried(pair.string, "query")
    for key in ("answers", "kernel"):
        found.tried(pair.strings, key)
    found.unknown(pair, _PAIR_KEYS, " in a pair")
    contexts = {key: _check_contexts(pair, key, found) for key in _LISTS}
    _check_repeated(contexts, found)
    if not contexts["positive_ctxs"]:
        found.add(pair.node, "no positive context: nothing can be measured with this question", "warning")
    _check_kernel(pair, {name: text for name, text, _ in contexts["positive_ctxs"]}, found)


def _check_contexts(pair: Fields, key: str, found: ProblemReport) -> list[tuple[str, str, Any]]:
    """Names, texts and nodes of the contexts of a list."""
    there = []
    for node in found.tried(pair.items, key) or ():
        context = found.tried(fields_of, found.path, node, f"each of {key!r}")
        if context is None:
            continue
        found.unknown(context, _CONTEXT_KEYS, f" in one of {key!r}")
        fqn, text = found.tried(context.string, "fqn"), found.tried(context.string, "text")
        if fqn is None or text is None:
            continue
        there.append((fqn, text, context.entries["fqn"]))
        if found.texts.setdefault(fqn, text) != text:
            found.add(context.node, f"{fqn!r} has another text elsewhere in this file", "warning")
        _check_verdict(context, key, text, found)
    return there


def _check_verdict(context: Fields, key: str, text: str, found: ProblemReport) -> None:
    if not context.has("verdict"):
        found.add(context.node, "'verdict' is missing: nobody knows who judged this context", "warning")
        return
    verdict = found.tried(context.string, "verdict")
    if verdict is None:
        return
    part = _flag(context, "part_of_kernel", found)
    if verdict != _LISTS[key] and not (part and key == "positive_ctxs" and verdict in ("NO", "UNSURE")):
        found.add(context.entries["verdict"], f"verdict {verdict!r} does not belong into {key!r}")
    if verdict == "YES":
        evidence = found.tried(context.string, "evidence")
        if evidence is not None and not stands_in(evidence, [text]):
            found.add(context.entries["evidence"], f"evidence does not stand in the text: {evidence[:80]!r}")


def _check_repeated(contexts: dict[str, list[tuple[str, str, Any]]], found: ProblemReport) -> None:
    seen: dict[tuple[str, str], str] = {}
    for key, there in contexts.items():
        for fqn, text, node in there:
            first = seen.setdefault((fqn, text), key)
            if seen[fqn, text] is not key or sum(one[:2] == (fqn, text) for one in there) > 1:
                where = "twice" if first == key else f"in {first!r} and in {key!r}"
                found.add(node, f"context {fqn!r} occurs {where}")


def _check_kernel(pair: Fields, positives: dict[str, str], found: ProblemReport) -> None:
    named = [(name, pair.entries["kernel"]) for name in _quiet(pair, "kernel")]
    status = found.tried(pair.string, "kernel_status") if pair.has("kernel_status") else None
    if status is not None and status not in STATUSES:
        found.add(pair.entries["kernel_status"], f"kernel_status must be one of {', '.join(STATUSES)}")
    elif status is not None and bool(named) == (status == "unresolved"):
        what = "must be empty" if named else "is empty"
        found.add(pair.entries.get("kernel", pair.node), f"kernel {what}, but its status is {status!r}")
    for node in found.tried(pair.items, "alternatives") or ():
        if node.id != "sequence":
            found.add(node, "each of 'alternatives' must be a list of names")
            continue
        members = [found.tried(string_of, found.path, one, "each of 'alternatives'") for one in node.value]
        named += [(name, node) for name in members if name is not None]
    for name, node in named:
        if name not in positives:
            found.add(node, f"kernel names {name!r}, which is not among its positive_ctxs")
    _check_sources(pair, positives, found)


def _check_sources(pair: Fields, positives: dict[str, str], found: ProblemReport) -> None:
    sources = found.mapping(pair, "kernels")
    for source in sources.entries if sources is not None else ():
        kernel = found.mapping(sources, source)  # type: ignore[arg-type]  # there, or nothing to go through
        if kernel is None:
            continue
        found.unknown(kernel, _KERNEL_KEYS, f" in kernel {source!r}")
        names = found.tried(kernel.strings, "contexts") or []
        if not kernel.has("evidence") or not names or not set(names) <= positives.keys():
            continue
        evidence = found.tried(kernel.string, "evidence")
        if evidence is not None and not stands_in(evidence, [positives[name] for name in names]):
            found.add(kernel.entries["evidence"], f"evidence stands in no text of kernel {source!r}")


def _flag(fields: Fields, key: str, found: ProblemReport) -> bool:
    if not fields.has(key):
        return False
    node = fields.entries[key]
    if node.id != "scalar" or node.tag != "tag:yaml.org,2002:bool":
        found.add(node, f"{key!r} must be true or false")
        return False
    return str(node.value).lower() == "true"


def _quiet(pair: Fields, key: str) -> list[str]:
    """The names under a key; problems with them were listed before."""
    try:
        return pair.strings(key)
    except DatasetError:
        return []
