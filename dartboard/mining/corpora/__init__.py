"""Where contexts come from: a Python package, a folder, a store, or a data set with known answers.

::

    package:google.adk            an installed package, read and never imported
    package:google.adk@FOLDER     one that is unpacked below a folder
    folder:docs                   a folder of documents, in pieces
    store:docs.dartboard#manuals  a collection of a store
    dataset:hotpotqa              the passages of a data set, by name or by its folder
"""

from dartboard.embeddings import EmbeddingModel
from dartboard.errors import ConfigError
from dartboard.mining.corpora.base import Corpus

FORMS = "package:NAME[@FOLDER], folder:PATH, store:URL[#COLLECTION], dataset:NAME-OR-PATH"


def open_corpus(spec: str, *, model: EmbeddingModel | None = None) -> Corpus:
    """The corpus of that name.

    Args:
        spec: one of the forms above.
        model: makes the vectors of its texts; the default model unless given.

    Raises:
        ConfigError: the name has another form.
        DatasetError: there is no such package, folder or data set, or nothing in it can be read.
        StoreError: there is no such store.
    """
    kind, colon, rest = spec.strip().partition(":")
    if not colon or not rest.strip():
        raise ConfigError(f"cannot tell which corpus {spec!r} is: write {FORMS}", field="corpus")
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
    raise ConfigError(f"unknown kind of corpus {kind!r}: write {FORMS}", field="corpus")
