"""``retrieval_dataset.yaml``: pairs of questions and contexts that were mined and judged.

::

    pairs:
      - id: "fix_errors:01"
        query: "How do I create a minimal LlmAgent?"
        positive_ctxs: [{fqn: "google.adk.agents.llm_agent.LlmAgent", text: "..."}]
        negative_ctxs: [{fqn: "google.adk.plugins.RetryPlugin", text: "..."}]
        kernel: ["google.adk.agents.llm_agent.LlmAgent"]      # optional: the contexts that are required
        answers: ["..."]                                      # optional

The file is parsed as data by YAML's safe loader and never builds objects. Aliases are refused: a few
hundred bytes of them can stand for more than memory holds. Every complaint names file and line.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dartboard.datasets.rows import Place, need_file
from dartboard.datasets.text import Groups, Passage, Qrels, TextDataset, unique
from dartboard.errors import DatasetError, MissingExtraError

_STRING = "tag:yaml.org,2002:str"
_NULL = "tag:yaml.org,2002:null"


def load_mined(path: str | Path) -> TextDataset:
    """The questions of a mined file over one corpus of all their contexts.

    A context is known by its ``fqn``; where several texts share one, the later ones are ``fqn#2`` and so
    on. Pairs may carry more keys than those above; they are not read.
    """
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    contexts = _Contexts()
    queries: dict[str, str] = {}
    qrels: Qrels = {}
    kernels: Groups = {}
    answers: Groups = {}
    for pair in _read_pairs(file):
        query_id = pair.string("id")
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
        if known := pair.strings("answers"):
            answers[query_id] = known
    return TextDataset(
        name=file.name.removesuffix(".gz").rpartition(".")[0],
        passages=contexts.passages,
        queries=queries,
        qrels=qrels,
        facets={
            query_id: {str(number): [one] for number, one in enumerate(kernel, start=1)}
            for query_id, kernel in kernels.items()
        },
        kernels=kernels,
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


@dataclass(frozen=True, slots=True)
class _Mapping:
    """A YAML mapping whose values are checked when they are read."""

    path: Path
    node: Any
    entries: dict[str, Any]

    def error(self, problem: str, node: Any = None) -> DatasetError:
        return _place(self.path, node or self.node).error(problem)

    def string(self, key: str) -> str:
        node = self.entries.get(key)
        if node is None:
            raise self.error(f"{key!r} is missing")
        value = _string(self.path, node, repr(key))
        if not value.strip():
            raise self.error(f"{key!r} is empty", node)
        return value

    def strings(self, key: str) -> list[str]:
        return [_string(self.path, node, f"each of {key!r}") for node in self.items(key)]

    def items(self, key: str) -> list[Any]:
        """The nodes of a list; none where the key is absent or null."""
        node = self.entries.get(key)
        if node is None or node.tag == _NULL:
            return []
        if node.id != "sequence":
            raise self.error(f"{key!r} must be a list", node)
        nodes: list[Any] = node.value
        return nodes


def _read_pairs(path: Path) -> Iterator[_Mapping]:
    root = _mapping(path, _parse(path), "the file")
    if "pairs" not in root.entries:
        raise root.error("'pairs' is missing: the file must have a list of them at its top")
    for node in root.items("pairs"):
        yield _mapping(path, node, "each of 'pairs'")


def _parse(path: Path) -> Any:
    """The tree of nodes of a file; nodes hold text and lines, and nothing is built from them."""
    try:
        import yaml
    except ImportError as error:  # pragma: no cover - the tests have it
        raise MissingExtraError("pyyaml", "eval", "A mined data set") from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = path.read_text(encoding="utf-8")
        for event in yaml.parse(text, Loader=loader):
            if isinstance(event, yaml.AliasEvent):
                raise _place(path, event).error(
                    f"alias *{event.anchor}: write the value out, aliases are refused"
                )
        root = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        reason = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise Place(path, line).error(f"not YAML ({reason})") from None
    if root is None:
        raise Place(path, 1).error("the file is empty: expected 'pairs'")
    return root


def _mapping(path: Path, node: Any, what: str) -> _Mapping:
    if node.id != "mapping":
        raise _place(path, node).error(f"{what} must be a mapping, got a {node.id}")
    entries: dict[str, Any] = {}
    for key, value in node.value:
        name = _string(path, key, "a key")
        if name in entries:
            raise _place(path, key).error(f"key {name!r} occurs twice")
        entries[name] = value
    return _Mapping(path, node, entries)


def _string(path: Path, node: Any, what: str) -> str:
    """A string; ``NO``, ``012`` or ``1:30`` without quotes are something else to YAML."""
    if node.id != "scalar":
        raise _place(path, node).error(f"{what} must be a string, got a {node.id}")
    if node.tag != _STRING:
        kind = node.tag.rpartition(":")[2]
        raise _place(path, node).error(
            f"{what} must be a string, but {node.value!r} is {kind}: put it in quotes"
        )
    value: str = node.value
    return value


def _contexts(pair: _Mapping, key: str, contexts: _Contexts) -> dict[str, str]:
    """Ids of the contexts under ``key``, with the names that they have."""
    found = {}
    for node in pair.items(key):
        context = _mapping(pair.path, node, f"each of {key!r}")
        fqn = context.string("fqn")
        found[contexts.add(fqn, context.string("text"))] = fqn
    return found


def _kernel(pair: _Mapping, names: list[str], positive: dict[str, str]) -> list[str]:
    by_name = {fqn: id_ for id_, fqn in reversed(positive.items())}
    for name in names:
        if name not in by_name:
            raise pair.error(f"kernel names {name!r}, which is not among its positive_ctxs")
    return unique([by_name[name] for name in names])


def _place(path: Path, node: Any) -> Place:
    return Place(path, node.start_mark.line + 1)
