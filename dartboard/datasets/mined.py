"""``retrieval_dataset.yaml``: mined and judged pairs of questions and contexts.

::

    pairs:
      - id: "fix_errors:01"
        query: "How do I create a minimal LlmAgent?"
        positive_ctxs: [{fqn: "google.adk.agents.llm_agent.LlmAgent", text: "..."}]
        negative_ctxs: [{fqn: "google.adk.plugins.RetryPlugin", text: "..."}]
        kernel: ["google.adk.agents.llm_agent.LlmAgent"]      # optional: the contexts that are required
        alternatives: [["google.adk.agents.base_agent.Base"]] # optional: sets that answer as well
        answers: ["..."]                                      # optional
    end: {pairs: 1, sha256: "..."}          # since version 2; missing in a truncated file

The file is parsed with YAML's safe loader and never creates objects. Aliases are rejected, because a few
hundred bytes of them can expand to more than memory holds. Every error names file and line.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dartboard.datasets.records import need_file
from dartboard.datasets.safe_yaml import Fields, odd_character, read_fields, refused_id, string_of
from dartboard.datasets.text_dataset import Alternatives, Groups, Passage, Qrels, TextDataset, unique
from dartboard.errors import DatasetError

END = "end"
"""The last key of a complete file."""

_FIRST_WITH_END = 2


def load_mined(path: str | Path) -> TextDataset:
    """Read the questions of a mined file, with one corpus of all their contexts.

    A context is identified by its ``fqn``. If several texts share one, the later ones become ``fqn#2`` and so
    on. Each member of the kernel is a facet; a context that alone replaces members in one of the
    ``alternatives`` covers their facets too. Additional keys of pairs are ignored.

    Args:
        path: The ``retrieval_dataset.yaml``.

    Returns:
        The data set without embeddings.

    Raises:
        DatasetError: the file is missing, malformed, truncated, or marked as not verified; the message names
            the line.
    """
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    builder = _Builder()
    for pair in _read_pairs(file):
        query_id = pair.string("id")
        if (odd := odd_character(query_id)) is not None:
            raise pair.error(refused_id(query_id, odd), pair.entries["id"])
        if query_id in builder.queries:
            raise pair.error(f"id {query_id!r} occurs twice")
        builder.add(
            query_id,
            pair.string("query"),
            _contexts(pair, "positive_ctxs"),
            _contexts(pair, "negative_ctxs"),
            kernel=pair.strings("kernel"),
            alternatives=_alternatives(pair),
            answers=pair.strings("answers"),
            error=pair.error,
        )
    return builder.dataset(file.name.removesuffix(".gz").rpartition(".")[0])


def text_dataset(name: str, pairs: Iterable[Mapping[str, Any]]) -> TextDataset:
    """The data set of these pairs, given as the data of a mined file."""
    builder = _Builder()
    for pair in pairs:
        builder.add(
            pair["id"],
            pair["query"],
            *([(one["fqn"], one["text"]) for one in pair[key]] for key in ("positive_ctxs", "negative_ctxs")),
            kernel=pair.get("kernel", []),
            alternatives=pair.get("alternatives", []),
            answers=pair.get("answers", []),
            error=DatasetError,
        )
    return builder.dataset(name)


@dataclass(slots=True)
class _Builder:
    """Collects pairs: contexts by name and text, each with one id."""

    passages: list[Passage] = field(default_factory=list)
    queries: dict[str, str] = field(default_factory=dict)
    qrels: Qrels = field(default_factory=dict)
    kernels: Groups = field(default_factory=dict)
    alternatives: Alternatives = field(default_factory=dict)
    answers: Groups = field(default_factory=dict)
    _ids: dict[tuple[str, str], str] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def add(
        self,
        query_id: str,
        query: str,
        positive: Iterable[tuple[str, str]],
        negative: Iterable[tuple[str, str]],
        *,
        kernel: list[str],
        alternatives: list[list[str]],
        answers: list[str],
        error: Callable[[str], DatasetError],
    ) -> None:
        """Add a pair; contexts are names with texts, and alternatives are used only with a kernel."""
        self.queries[query_id] = query
        yes = {self._id(fqn, text): fqn for fqn, text in positive}
        no = {self._id(fqn, text): fqn for fqn, text in negative}
        if both := yes.keys() & no.keys():
            raise error(f"context {min(both)!r} is both positive and negative")
        self.qrels[query_id] = dict.fromkeys(no, 0) | dict.fromkeys(yes, 1)
        if kernel:
            self.kernels[query_id] = _members(kernel, yes, error)
            others = [found for names in alternatives if (found := _members(names, yes, error))]
            if others:
                self.alternatives[query_id] = others
        if answers:
            self.answers[query_id] = answers

    def dataset(self, name: str) -> TextDataset:
        """All pairs as a data set."""
        return TextDataset(
            name=name,
            passages=self.passages,
            queries=self.queries,
            qrels=self.qrels,
            facets={
                query_id: _facets(kernel, self.alternatives.get(query_id, []))
                for query_id, kernel in self.kernels.items()
            },
            kernels=self.kernels,
            alternatives=self.alternatives,
            answers=self.answers,
            pools={query_id: list(judged) for query_id, judged in self.qrels.items()},
            metadata={"type": "real"},
        )

    def _id(self, fqn: str, text: str) -> str:
        if (fqn, text) not in self._ids:
            number = self._seen[fqn] = self._seen.get(fqn, 0) + 1
            self._ids[fqn, text] = fqn if number == 1 else f"{fqn}#{number}"
            self.passages.append(Passage(self._ids[fqn, text], text, "", {"fqn": fqn}))
        return self._ids[fqn, text]


def _read_pairs(path: Path) -> Iterator[Fields]:
    root = read_fields(path, "'pairs'")
    if "pairs" not in root.entries:
        raise root.error("'pairs' is missing: the file must have a list of them at its top")
    check_end(root)
    if root.has("verified") and str(root.entries["verified"].value).lower() != "true":
        raise root.error(
            "the judge of this data set failed its controls, so its labels are not verified: mine again with "
            "another judge (dartboard mine validate says more)",
            root.entries["verified"],
        )
    yield from root.mappings("pairs")


def check_end(root: Fields) -> None:
    """Raise if the file's end or counted pairs are missing."""
    version = root.number("version", 1, least=0, most=1e9)
    if version < _FIRST_WITH_END and not root.has(END):
        return
    if not root.has(END):
        raise root.error(f"the file is truncated: its end is missing ({END!r}). Copy it again, or mine again")
    end = root.mapping(END)
    there, counted = len(root.items("pairs")), end.number("pairs", -1, least=0, most=1e9)
    if counted != there:
        said = "does not say how many" if counted < 0 else f"counts {counted:.0f}"
        raise end.error(f"the file has {there} pairs, and its end {said}: it was truncated or changed")
    end.string("sha256")


def _contexts(pair: Fields, key: str) -> list[tuple[str, str]]:
    """Names and texts of the contexts under ``key``."""
    return [(context.string("fqn"), context.string("text")) for context in pair.mappings(key)]


def _members(names: list[str], positive: dict[str, str], error: Callable[[str], DatasetError]) -> list[str]:
    """The ids of named contexts; they must be positive ones."""
    by_name = {fqn: id_ for id_, fqn in reversed(positive.items())}
    for name in names:
        if name not in by_name:
            raise error(f"kernel names {name!r}, which is not among its positive_ctxs")
    return unique([by_name[name] for name in names])


def _alternatives(pair: Fields) -> list[list[str]]:
    """The sets of names that answer as well as the kernel."""
    nodes = pair.items("alternatives")
    if (odd := next((node for node in nodes if node.id != "sequence"), None)) is not None:
        raise pair.error("each of 'alternatives' must be a list of names", odd)
    return [[string_of(pair.path, one, "each of 'alternatives'") for one in node.value] for node in nodes]


def _facets(kernel: list[str], alternatives: list[list[str]]) -> dict[str, list[str]]:
    """One facet per member of the kernel: the member, and contexts that replace it in an alternative."""
    facets = {member: [member] for member in kernel}
    for other in alternatives:
        added = [one for one in other if one not in facets]
        for member in set(kernel).difference(other) if len(added) == 1 else ():
            facets[member] = unique([*facets[member], *added])
    return {str(number): carriers for number, carriers in enumerate(facets.values(), start=1)}
