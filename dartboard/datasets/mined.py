"""``retrieval_dataset.yaml``: pairs of questions and contexts that were mined and judged.

::

    pairs:
      - id: "fix_errors:01"
        query: "How do I create a minimal LlmAgent?"
        positive_ctxs: [{fqn: "google.adk.agents.llm_agent.LlmAgent", text: "..."}]
        negative_ctxs: [{fqn: "google.adk.plugins.RetryPlugin", text: "..."}]
        kernel: ["google.adk.agents.llm_agent.LlmAgent"]      # optional: the contexts that are required
        alternatives: [["google.adk.agents.base_agent.Base"]] # optional: sets that answer as well
        answers: ["..."]                                      # optional
    end: {pairs: 1, sha256: "..."}          # from version 2 on: a file that was cut short lacks it

The file is parsed as data by YAML's safe loader and never builds objects. Aliases are refused: a few
hundred bytes of them can stand for more than memory holds. Every error names file and line.
"""

from dataclasses import dataclass, field
from pathlib import Path

from dartboard.datasets.records import need_file
from dartboard.datasets.safe_yaml import Fields, odd_character, read_fields, refused_id, string_of
from dartboard.datasets.text_dataset import Alternatives, Groups, Passage, Qrels, TextDataset, unique

END = "end"
"""The last key of a file that is whole."""

_FIRST_WITH_END = 2


def load_mined(path: str | Path) -> TextDataset:
    """The questions of a mined file over one corpus of all their contexts.

    A context is known by its ``fqn``; where several texts share one, the later ones are ``fqn#2`` and so
    on. Each member of the kernel is a facet; a context that alone replaces members in one of the
    ``alternatives`` covers their facets, too. Pairs may carry more keys than those above; they are not
    read. A file that was cut short is refused.
    """
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    contexts = _Contexts()
    queries: dict[str, str] = {}
    qrels: Qrels = {}
    kernels: Groups = {}
    alternatives: Alternatives = {}
    answers: Groups = {}
    root = read_fields(file, "'pairs'")
    if "pairs" not in root.entries:
        raise root.error("'pairs' is missing: the file must have a list of them at its top")
    check_end(root)
    for pair in root.mappings("pairs"):
        query_id = pair.string("id")
        if (odd := odd_character(query_id)) is not None:
            raise pair.error(refused_id(query_id, odd), pair.entries["id"])
        if query_id in queries:
            raise pair.error(f"id {query_id!r} occurs twice")
        queries[query_id] = pair.string("query")
        positive = _contexts(pair, "positive_ctxs", contexts)
        negative = _contexts(pair, "negative_ctxs", contexts)
        if both := positive.keys() & negative.keys():
            raise pair.error(f"context {min(both)!r} is both positive and negative")
        qrels[query_id] = dict.fromkeys(negative, 0) | dict.fromkeys(positive, 1)
        if kernel := pair.strings("kernel"):
            kernels[query_id] = _kernel(pair, kernel, positive)
            if others := _alternatives(pair, positive):
                alternatives[query_id] = others
        if known := pair.strings("answers"):
            answers[query_id] = known
    return TextDataset(
        name=file.name.removesuffix(".gz").rpartition(".")[0],
        passages=contexts.passages,
        queries=queries,
        qrels=qrels,
        facets={
            query_id: _facets(kernel, alternatives.get(query_id, [])) for query_id, kernel in kernels.items()
        },
        kernels=kernels,
        alternatives=alternatives,
        answers=answers,
        pools={query_id: list(judged) for query_id, judged in qrels.items()},
        metadata={"type": "real"},
    )


@dataclass(slots=True)
class _Contexts:
    """Contexts by name and text, each under one id."""

    passages: list[Passage] = field(default_factory=list)
    _ids: dict[tuple[str, str], str] = field(default_factory=dict)
    _seen: dict[str, int] = field(default_factory=dict)

    def add(self, fqn: str, text: str) -> str:
        if (fqn, text) not in self._ids:
            number = self._seen[fqn] = self._seen.get(fqn, 0) + 1
            self._ids[fqn, text] = fqn if number == 1 else f"{fqn}#{number}"
            self.passages.append(Passage(self._ids[fqn, text], text, "", {"fqn": fqn}))
        return self._ids[fqn, text]


def check_end(root: Fields) -> None:
    """Refuse a file that lacks its end, or pairs that its end counts."""
    version = root.number("version", 1, least=0, most=1e9)
    if version < _FIRST_WITH_END and not root.has(END):
        return
    if not root.has(END):
        raise root.error(
            f"the file was cut short: its end is missing ({END!r}). Copy it again, or mine again"
        )
    end = root.mapping(END)
    there, counted = len(root.items("pairs")), end.number("pairs", -1, least=0, most=1e9)
    if counted != there:
        said = "does not say how many" if counted < 0 else f"counts {counted:.0f}"
        raise end.error(f"the file has {there} pairs, and its end {said}: it was cut short or changed")
    end.string("sha256")


def _contexts(pair: Fields, key: str, contexts: _Contexts) -> dict[str, str]:
    """Ids of the contexts under ``key``, with the names that they have."""
    found = {}
    for context in pair.mappings(key):
        fqn = context.string("fqn")
        found[contexts.add(fqn, context.string("text"))] = fqn
    return found


def _kernel(pair: Fields, names: list[str], positive: dict[str, str]) -> list[str]:
    by_name = {fqn: id_ for id_, fqn in reversed(positive.items())}
    for name in names:
        if name not in by_name:
            raise pair.error(f"kernel names {name!r}, which is not among its positive_ctxs")
    return unique([by_name[name] for name in names])


def _alternatives(pair: Fields, positive: dict[str, str]) -> list[list[str]]:
    """The sets that answer as well as the kernel, each as ids."""
    sets = []
    for node in pair.items("alternatives"):
        if node.id != "sequence":
            raise pair.error("each of 'alternatives' must be a list of names", node)
        names = [string_of(pair.path, one, "each of 'alternatives'") for one in node.value]
        sets.append(_kernel(pair, names, positive))
    return [one for one in sets if one]


def _facets(kernel: list[str], alternatives: list[list[str]]) -> dict[str, list[str]]:
    """One facet a member of the kernel: the member, and what alone stands in for it in an alternative."""
    facets = {member: [member] for member in kernel}
    for other in alternatives:
        added = [one for one in other if one not in facets]
        for member in set(kernel).difference(other) if len(added) == 1 else ():
            facets[member] = unique([*facets[member], *added])
    return {str(number): carriers for number, carriers in enumerate(facets.values(), start=1)}
