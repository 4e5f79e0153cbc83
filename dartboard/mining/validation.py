"""Is a mined data set what it claims to be? Every problem is listed with its line, not the first alone.

Errors: what breaks the schema, keys that nobody knows, a file that was cut short, what occurs twice, a
positive whose evidence does not stand in its text, a kernel that is not among the positives, and control
rates that are missing or do not fit their counts or the pairs. Warnings: what can be meant, but is worth a
look, such as a question without a positive context, or a change since the file was written.

By hand, and not by pydantic: that knows no lines of a file, and most of this compares parts of it with each
other.
"""

from pathlib import Path
from typing import Any

from dartboard.datasets.records import need_file
from dartboard.datasets.safe_yaml import Fields, fields_of, odd_character, read_fields, refused_id, string_of
from dartboard.errors import DatasetError
from dartboard.mining.dataset import STATUSES
from dartboard.mining.judges.evidence import stands_in
from dartboard.mining.validation_head import Problem, ProblemReport, check_head

_LISTS = {"positive_ctxs": ("YES",), "negative_ctxs": ("NO",), "unsure_ctxs": ("UNSURE",)}
_PAIR_KEYS = [
    *("id", "query", "kind", "answers", "facets", "answered_without_context", *_LISTS),
    *("kernel", "kernel_status", "kernel_source", "alternatives", "kernels"),
]
_CONTEXT_KEYS = [
    *("fqn", "verdict", "part_of_kernel", "evidence", "reason", "judge", "prompt_version", "votes"),
    *("origins", "text"),
]
_KERNEL_KEYS = ["contexts", "status", "judge", "evidence", "reason", "calls"]


def validate(path: str | Path) -> list[Problem]:
    """All problems of a data set's file, by line; an empty list where there are none.

    Raises:
        DatasetError: there is no such file.
    """
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    found = ProblemReport(file)
    root = found.tried(read_fields, file, "'pairs'")
    if root is not None:
        check_head(root, found)
        _check_pairs(root, found)
    return sorted(found.problems)


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
    if verdict not in _LISTS[key] and not (part and key == "positive_ctxs" and verdict in ("NO", "UNSURE")):
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
