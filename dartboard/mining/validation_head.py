"""What a mined data set says of itself: format, end, and the judge's error rates, against what is there.

Problems are gathered while the file is read on: all of them are told, not the first alone.
"""

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

from dartboard.datasets.mined import END, check_end
from dartboard.datasets.safe_yaml import Fields, fields_of, place_of
from dartboard.errors import DatasetError
from dartboard.mining.controls import KINDS, NEGATIVES
from dartboard.mining.dataset_writer import FORMAT, VERSION, digest_of

Level = Literal["error", "warning"]

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


RATES = {"false_positive": NEGATIVES, "false_negative": ("positive",)}
DOUBTFUL = 0.1
"""A judge that is wrong more often than this on its controls is worth a warning."""

TOP = ("format", "version", "corpus", "judge", "controls", "agreement", "settings", "pairs", END)

_PARTS = {
    "corpus": ("name", "fingerprint"),
    "judge": ("name", "prompt_version"),
    "controls": (
        *("judge", "seed", "cases", *RATES, "by_kind", "answered_without_context"),
        *("insufficient_targets", "errors"),
    ),
    "agreement": (
        *("first", "second", "shared", "pairs", "cases", "observed", "kappa", "low", "high"),
        *("most_apart", "table"),
    ),
    END: ("pairs", "sha256"),
}
_RATE = ("rate", "low", "high", "errors", "decided", "unsure", "cases")
_ERROR = ("kind", "case", "contexts", "label", "evidence", "reason")
_COUNTS = ("errors", "decided", "unsure")
_MANY = 1e9
_ROUNDING = 1e-6


def check_head(root: Fields, found: ProblemReport) -> None:
    """All but the pairs themselves."""
    found.unknown(root, TOP, "")
    for name, keys in _PARTS.items():
        if (part := found.mapping(root, name)) is not None:
            found.unknown(part, keys, f" in {name!r}")
    _check_format(root, found)
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
        cases = found.tried(controls.number, "cases", 0, least=0, most=_MANY)
        if cases is not None and cases != len(pairs.value):
            message = f"'controls' are of {cases:.0f} cases, and the file has {len(pairs.value)} pairs"
            found.add(controls.keys["cases"], message)
    kinds = found.mapping(controls, "by_kind")
    if kinds is not None:
        found.unknown(kinds, [kind for kind in KINDS if kind != "zero"], " in 'by_kind'")
    for node in found.tried(controls.items, "errors") or ():
        if (error := found.tried(fields_of, found.path, node, "each of 'errors'")) is not None:
            found.unknown(error, _ERROR, " in an error")
    by_kind = {kind: found.mapping(kinds, kind) for kind in kinds.entries} if kinds is not None else {}
    for kind, rate in by_kind.items():
        if rate is not None:
            _check_rate(rate, f"by_kind.{kind}", found)
    for name, parts in RATES.items():
        rate = found.mapping(controls, name)
        if rate is not None:
            _check_rate(rate, name, found)
            _check_sum(rate, name, [by_kind.get(kind) for kind in parts], found)
        elif name not in controls.entries:
            found.add(controls.node, f"'controls' lack {name!r}: every run measures it")


def _check_rate(rate: Fields, name: str, found: ProblemReport) -> None:
    """Rate, interval and counts must fit each other; where nothing was decided there is no rate."""
    found.unknown(rate, _RATE, f" in {name!r}")
    values: dict[str, float] = {}
    for key in ("low", "rate", "high", *_COUNTS):
        if not rate.has(key):
            continue
        most = _MANY if key in _COUNTS else 1
        value = found.tried(rate.number, key, 0.0, least=0, most=most)
        if value is None:
            return
        values[key] = value
    decided = values.get("decided")
    needed = ("low", "high") if decided == 0 else ("low", "rate", "high")
    if lacking := [key for key in needed if key not in values]:
        found.add(rate.node, f"{name!r} lacks {lacking[0]!r}")
        return
    if decided == 0:
        return
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


def _check_agreement(root: Fields, found: ProblemReport) -> None:
    """Shares and kappa in their ranges; a bootstrap's interval mostly holds its kappa, and must be one."""
    agreement = found.mapping(root, "agreement")
    if agreement is None:
        return
    values: dict[str, float] = {}
    for key, least in (("observed", 0), ("kappa", -1), ("low", -1), ("high", -1), ("most_apart", 0)):
        if agreement.has(key):
            value = found.tried(agreement.number, key, 0.0, least=least, most=1)
            if value is not None:
                values[key] = value
    low, high = values.get("low"), values.get("high")
    if low is None or high is None:
        return
    if low > high:
        found.add(agreement.node, "'agreement': the interval ends before it begins")
    elif "kappa" in values and not low <= values["kappa"] <= high:
        found.add(agreement.node, "'agreement': kappa lies outside of its interval", "warning")


def _check_sum(rate: Fields, name: str, parts: list[Fields | None], found: ProblemReport) -> None:
    """The counts of a rate are those of its kinds together."""
    there = [part for part in parts if part is not None]
    if len(there) < len(parts):
        return
    for key in _COUNTS:
        if not all(one.has(key) for one in (rate, *there)):
            continue
        values = [found.tried(one.number, key, 0, least=0, most=_MANY) for one in (rate, *there)]
        counted = [value for value in values if value is not None]
        if len(counted) == len(values) and counted[0] != sum(counted[1:]):
            message = f"{name!r} has {counted[0]:.0f} {key}, its kinds together {sum(counted[1:]):.0f}"
            found.add(rate.entries[key], message)
