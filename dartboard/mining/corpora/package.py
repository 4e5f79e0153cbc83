"""A Python package as documents: its modules, classes, functions and methods, each by its full name.

The name is that of the place of definition; every other name under which it can be imported leads there.
Private things are part of the module or class that holds them, unless a public module exports them.
"""

import tokenize
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dartboard.embeddings import EmbeddingModel
from dartboard.errors import DatasetError
from dartboard.ingest import Problem
from dartboard.mining.corpora.definitions import Definition, Module, is_public, read_module
from dartboard.mining.corpora.excerpts import (
    LONGEST,
    class_text,
    function_text,
    has_own_document,
    module_text,
    signature,
)
from dartboard.mining.corpora.exports import Meaning, Names
from dartboard.mining.corpora.locating import Located, ModuleFile, locate, module_files
from dartboard.mining.corpora.searching import SearchingCorpus
from dartboard.mining.documents import Document

_MOST_ALIASES = 3


class PackageCorpus(SearchingCorpus):
    """The documents of a package. ``problems`` are files that could not be read; the rest is there."""

    def __init__(
        self,
        name: str,
        folder: str | Path | None = None,
        *,
        longest: int = LONGEST,
        model: EmbeddingModel | None = None,
    ) -> None:
        located = locate(name, folder)
        self.version = located.version
        self.problems: list[Problem] = []
        modules = self._read(located)
        if not modules:
            raise DatasetError(f"{located.path} holds no Python file that can be read")
        self._names = Names(modules)
        writing = _Writing(modules, self._names.exported(), longest)
        super().__init__(f"{name} {located.version}".strip(), writing.documents(), model=model)

    def get(self, fqn: str) -> Document | None:
        """By definition, by any name it can be imported under, or by an attribute of either."""
        if (exact := super().get(fqn)) is not None:
            return exact
        meaning = self._names.meaning(fqn)
        if meaning is None:
            return None
        if (found := super().get(meaning.fqn)) is not None:
            return found
        if isinstance(meaning, Definition) and meaning.kind == "method":
            return super().get(meaning.fqn.rpartition(".")[0]) or super().get(meaning.module)
        return super().get(meaning.module) if isinstance(meaning, Definition) else None

    @property
    def modules(self) -> Mapping[str, Module]:
        """The parsed files by name."""
        return self._names.modules

    def meaning(self, name: str) -> Meaning | None:
        """The definition or module that a name leads to, whether or not it has a document."""
        return self._names.meaning(name)

    def _read(self, located: Located) -> dict[str, Module]:
        modules = {}
        for file in module_files(located):
            shown = file.path.relative_to(located.path.parent).as_posix()
            try:
                modules[file.fqn] = _module(file, shown)
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self.problems.append(Problem(shown, f"cannot be parsed: {error}", "damaged"))
        return modules


class _Writing:
    """Documents from modules."""

    def __init__(self, modules: dict[str, Module], exported: dict[str, list[str]], longest: int) -> None:
        self._modules = modules
        self._exported = exported
        self._longest = longest

    def documents(self) -> list[Document]:
        return [document for module in self._modules.values() for document in self._of_module(module)]

    def _of_module(self, module: Module) -> list[Document]:
        documents = []
        if is_public(module.fqn) and (text := module_text(module, self._shown, self._longest)):
            documents.append(self._document(module.fqn, "module", text, module, 1))
        for definition in module.definitions.values():
            if self._shown(definition):
                documents.append(self._of_definition(module, definition))
                documents.extend(
                    self._of_definition(module, member)
                    for member in definition.members.values()
                    if member is not None and has_own_document(member)
                )
        return documents

    def _shown(self, definition: Definition) -> bool:
        return is_public(definition.fqn) or definition.fqn in self._exported

    def _of_definition(self, module: Module, definition: Definition) -> Document:
        write = class_text if definition.kind == "class" else function_text
        line = definition.nodes[0].lineno
        text = write(module, definition, self._longest)
        return self._document(
            definition.fqn, definition.kind, text, module, line, signature=signature(definition)
        )

    def _document(self, fqn: str, kind: str, text: str, module: Module, line: int, **more: Any) -> Document:
        aliases = self._exported.get(fqn, [])[:_MOST_ALIASES]
        also = f"# also {', '.join(aliases)}\n" if aliases else ""
        facts = {"kind": kind, "module": module.fqn, "file": module.file, "line": line, **more}
        return Document(
            fqn, f"# {kind} {fqn}\n{also}{text}", facts | ({"aliases": aliases} if aliases else {})
        )


def _module(file: ModuleFile, shown: str) -> Module:
    with tokenize.open(file.path) as stream:
        source = stream.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # strange escapes in strings of others
        return read_module(file.fqn, source, is_package=file.is_package, file=shown)
