"""Where contexts come from: a Python package, a folder, a store, or a data set with known answers.

::

    package:google.adk            an installed package, read and never imported
    package:google.adk@FOLDER     one that is unpacked below a folder
    folder:docs                   a folder of documents, in pieces
    store:docs.dartboard#manuals  a collection of a store
    dataset:hotpotqa              the passages of a data set, by name or by its folder

A relative path in a name depends on the folder of whoever says it. A file that keeps such a name says it as
seen from the file's own folder, so that the file works from any folder, and on another machine if both move
together (:func:`seen_from`, :func:`resolved`).
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dartboard.embeddings import EmbeddingModel
from dartboard.errors import ConfigError
from dartboard.mining.corpora.base import Corpus

if TYPE_CHECKING:
    from dartboard.mining.corpora.memory_corpus import MemoryCorpus
    from dartboard.mining.corpora.store_corpus import StoreCorpus

FORMS = "package:NAME[@FOLDER], folder:PATH, store:URL[#COLLECTION], dataset:NAME-OR-PATH"


def open_corpus(spec: str, *, model: EmbeddingModel | None = None) -> Corpus:
    """The corpus of that name; it remembers the name, for files that have to say where their corpus is.

    Args:
        spec: one of the forms above.
        model: makes the vectors of its texts; the default model unless given.

    Raises:
        ConfigError: the name has another form.
        DatasetError: there is no such package, folder or data set, or nothing in it can be read.
        StoreError: there is no such store.
    """
    corpus = _opened(spec, model)
    corpus.spec = spec.strip()
    return corpus


def _opened(spec: str, model: EmbeddingModel | None) -> "MemoryCorpus | StoreCorpus":
    kind, colon, rest = spec.strip().partition(":")
    if not colon or not rest.strip():
        raise ConfigError(f"cannot tell which corpus {spec!r} is: write {FORMS}")
    match kind:
        case "package":
            from dartboard.mining.corpora.package_corpus import PackageCorpus

            name, _, folder = rest.partition("@")
            return PackageCorpus(name.strip(), folder or None, model=model)
        case "folder":
            from dartboard.mining.corpora.memory_corpus import FolderCorpus

            return FolderCorpus(rest, model=model)
        case "store":
            from dartboard.mining.corpora.store_corpus import StoreCorpus

            url, _, collection = rest.partition("#")
            return StoreCorpus(url, collection or None, model=model)
        case "dataset":
            from dartboard.mining.corpora.memory_corpus import LabelledCorpus

            return LabelledCorpus(rest, model=model)
    raise ConfigError(f"unknown kind of corpus {kind!r}: write {FORMS}")


_PARTS = re.compile(
    r"(?P<before>package:[^@]*@|folder:|store:|dataset:)(?P<path>[^#]*)(?P<after>#.*)?", re.DOTALL
)


def seen_from(folder: Path, spec: str) -> str | None:
    """The spec as seen from another folder; None where it holds anywhere: no path, or an absolute one."""
    parts = _relative(spec, Path())
    if parts is None:
        return None
    before, path, after = parts
    try:
        return f"{before}{Path(os.path.relpath(path, folder)).as_posix()}{after}"
    except ValueError:  # another drive
        return f"{before}{path.resolve()}{after}"


def resolved(folder: Path, spec: str) -> str:
    """A spec that was seen from a folder, with its path whole."""
    parts = _relative(spec, folder)
    if parts is None:
        return spec
    before, path, after = parts
    return f"{before}{path.resolve()}{after}"


def _relative(spec: str, base: Path) -> tuple[str, Path, str] | None:
    """What stands before the path, the path, and what stands after it; None without a relative path."""
    found = _PARTS.fullmatch(spec.strip())
    if found is None or "://" in found["path"]:
        return None
    before, after = found["before"], found["after"] or ""
    if before == "folder:" or before.startswith("package:"):
        path, after = found["path"] + after, ""
    else:
        path = found["path"]
    if not path or Path(path).is_absolute():
        return None
    if before == "dataset:" and not (base / path).exists():
        return None
    return before, base / path, after
