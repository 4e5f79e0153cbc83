"""Is a mined data set what it claims to be? Every problem is listed with its line, not the first alone.

Errors: what breaks the schema, keys that nobody knows, a file that was cut short, what occurs twice, a
positive whose evidence does not stand in its text, a kernel that is not among the positives, and a judge that
failed its controls. Warnings: what can be meant, but is worth a look, such as a question without a positive
context, missing controls, or a change since the file was written.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from dartboard.datasets.mined import JudgedContext, Mined, Pair, what_is_missing
from dartboard.datasets.records import need_file
from dartboard.datasets.safe_yaml import Lines, read_lines
from dartboard.errors import DatasetError
from dartboard.mining.dataset_writer import digest_of
from dartboard.mining.judges.words import stands_in

Level = Literal["error", "warning"]

DOUBTFUL = 0.1
"""A judge that is wrong more often than this on its controls is worth a warning."""

_LISTS = {"positive_ctxs": "YES", "negative_ctxs": "NO", "unsure_ctxs": "UNSURE"}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Something wrong, or odd, at a line of the file."""

    line: int
    level: Level
    message: str
    pair: str = ""


def validate(path: str | Path) -> list[Problem]:
    """All problems of a data set's file, by line; an empty list where there are none.

    Raises:
        DatasetError: there is no such file.
    """
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    try:
        mined, problems, lines = read_lines(file, Mined)
    except DatasetError as error:
        told = str(error).removeprefix(f"{file}, line ")
        line, _, message = told.partition(": ")
        return [Problem(int(line), "error", message) if line.isdigit() else Problem(1, "error", told)]
    if mined is None:
        return [Problem(line, "error", told) for line, told in problems]
    check = _Check(mined, lines)
    check.head(digest_of(file.read_text(encoding="utf-8")))
    for number, pair in enumerate(mined.pairs):
        check.pair(number, pair)
    return sorted(check.problems)


@dataclass(slots=True)
class _Check:
    """Problems so far, and what was seen of the whole file."""

    mined: Mined
    lines: Lines
    problems: list[Problem] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)

    def head(self, digest: str) -> None:
        """All but the pairs themselves."""
        mined = self.mined
        if mined.format is None:
            self._add("warning", "'format' is missing: this file was not written by dartboard mine")
        if (told := what_is_missing(mined)) is not None:
            self._add("error", told, "end")
        elif mined.end is not None and mined.end.sha256 != digest:
            self._add("warning", "the file was changed after it was written", "end")
        if not mined.verified:
            self._add(
                "error",
                "the judge failed its controls: these labels are not verified, take another judge",
                "verified",
            )
        if not mined.pairs:
            self._add("warning", "there are no pairs", "pairs")
        if mined.controls is None:
            self._add("warning", "'controls' are missing: nobody knows how often the judge is wrong")
            return
        if mined.controls.cases != len(mined.pairs):
            told = (
                f"'controls' are of {mined.controls.cases} cases, and the file has {len(mined.pairs)} pairs"
            )
            self._add("error", told, "controls", "cases")
        for name in ("false_positive", "false_negative"):
            rate = getattr(mined.controls, name).rate
            if rate is not None and rate > DOUBTFUL:
                told = f"{name!r} is {rate:.0%}: do not trust these labels blindly"
                self._add("warning", told, "controls", name)

    def pair(self, number: int, pair: Pair) -> None:
        """One question."""
        way: tuple[str | int, ...] = ("pairs", number)
        if pair.id in self.ids:
            self._add("error", f"id {pair.id!r} occurs twice", *way, "id", pair=pair.id)
        self.ids.add(pair.id)
        if not pair.positive_ctxs:
            told = "no positive context: nothing can be measured with this question"
            self._add("warning", told, *way, pair=pair.id)
        seen: set[tuple[str, str]] = set()
        for key, label in _LISTS.items():
            contexts: tuple[JudgedContext, ...] = getattr(pair, key)
            for place, context in enumerate(contexts):
                here = (*way, key, place)
                self._context(context, label, key, here, pair.id)
                if (context.fqn, context.text) in seen:
                    self._add("error", f"context {context.fqn!r} occurs twice", *here, pair=pair.id)
                seen.add((context.fqn, context.text))
        self._kernel(pair, way)

    def _context(
        self, context: JudgedContext, label: str, key: str, way: tuple[str | int, ...], pair: str
    ) -> None:
        if self.texts.setdefault(context.fqn, context.text) != context.text:
            told = f"{context.fqn!r} has another text elsewhere in this file"
            self._add("warning", told, *way, pair=pair)
        if context.verdict is None:
            told = "'verdict' is missing: nobody knows who judged this context"
            self._add("warning", told, *way, pair=pair)
            return
        if context.verdict != label and not (context.part_of_kernel and key == "positive_ctxs"):
            told = f"verdict {context.verdict!r} does not belong into {key!r}"
            self._add("error", told, *way, "verdict", pair=pair)
        if context.evidence and not stands_in(context.evidence, [context.text]):
            told = f"evidence does not stand in the text: {context.evidence[:80]!r}"
            self._add("error", told, *way, "evidence", pair=pair)

    def _kernel(self, pair: Pair, way: tuple[str | int, ...]) -> None:
        positives = {one.fqn: one.text for one in pair.positive_ctxs}
        named = [(name, "kernel") for name in pair.kernel]
        named += [(name, "alternatives") for names in pair.alternatives for name in names]
        for name, key in named:
            if name not in positives:
                told = f"kernel names {name!r}, which is not among its positive_ctxs"
                self._add("error", told, *way, key, pair=pair.id)
        status = pair.kernel_status
        if status is not None and bool(pair.kernel) == (status == "unresolved"):
            what = "must be empty" if pair.kernel else "is empty"
            self._add(
                "error", f"kernel {what}, but its status is {status!r}", *way, "kernel_status", pair=pair.id
            )
        for source, kernel in pair.kernels.items():
            texts = [positives[name] for name in kernel.contexts if name in positives]
            whole = len(texts) == len(kernel.contexts)
            if kernel.evidence and texts and whole and not stands_in(kernel.evidence, texts):
                told = f"evidence stands in no text of kernel {source!r}"
                self._add("error", told, *way, "kernels", source, "evidence", pair=pair.id)

    def _add(self, level: Level, message: str, *way: str | int, pair: str = "") -> None:
        self.problems.append(Problem(self.lines.of(*way), level, message, pair))
