"""``retrieval_dataset.yaml``: readable, quoted, and whole or absent.

Every text is quoted, or stands in a block where it has several lines: ``NO``, ``012`` and ``1:30`` stay
what they are. The file is written beside its place, synced and moved there, so a reader sees the old one or
the new one. Equal content gives equal bytes; nothing in it tells when, or how fast, it was made. Its last
lines say how many pairs there are and have the sha256 of all before them: a file that was cut short,
anywhere, is known by the missing end.

Beside it are the forms that other tools read. In their names white space becomes ``%20`` and the like.
"""

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from dartboard.datasets.beir import write_beir
from dartboard.datasets.mined import FORMAT, VERSION, Mined, plain, text_dataset
from dartboard.datasets.text_dataset import Passage, TextDataset
from dartboard.datasets.trec import write_qrels
from dartboard.errors import ConfigError, MissingExtraError

FILE = "retrieval_dataset.yaml"
END = "end"
"""The last key of a complete file."""

_MADE = "# Made by dartboard mine."
_HEAD = f"""\
{_MADE} Check it with: dartboard mine validate {FILE}
# positive_ctxs answer the query, alone (verdict YES) or as part of its kernel; negative_ctxs do not;
# unsure_ctxs count as neither. Evidence stands word for word in its context.
"""
_OPEN = 'sha256: ""\n'
_MARK = "...\n"  # libyaml ends a document so that has a block with empty last lines, wherever that is

# Texts that every emitter writes into a block, and every reader gets out of it, as they are.
_BLOCK = re.compile(r"(?:[!-~\u00a1-\u167f\u3001-\ud7ff][^\n]*)(?:\n[^\n]*)*")
_NO_BLOCK = re.compile(
    r"[^\t\n -~\u00a1-\u200a\u2010-\u2027\u2030-\ud7ff\ue000-\ufefe\uff00-\ufffd]|[ \t](?:\n|\Z)|\t"
)


def write_dataset(mined: Mined, folder: str | Path) -> Path:
    """Write a data set into a folder; each file replaces its predecessor when it is whole.

    ::

        retrieval_dataset.yaml
        beir/corpus.jsonl, queries.jsonl, qrels/test.tsv, qrels/subtopics.txt, pools.jsonl
        qrels.txt

    Args:
        mined: what a run found.
        folder: made where it is not there.

    The forms for other tools, a BEIR folder with facets and TREC qrels, cannot say how far to trust them:
    where the judge failed its controls they are not written, and those of an earlier run are removed.

    Returns:
        The path of the YAML file.

    Raises:
        ConfigError: the folder holds files of the same names that we did not write.
    """
    target = Path(folder)
    check_folder(target)
    target.mkdir(parents=True, exist_ok=True)
    file = target / FILE
    write_atomically(file, dump(mined))
    if mined.verified:
        _export(text_dataset(file.stem, mined.pairs), target)
    else:
        for name in EXPORTS:
            (target / name).unlink(missing_ok=True)
    return file


def check_folder(folder: Path) -> None:
    """Refuse a folder that holds files of the same names which no run of ours has written.

    Raises:
        ConfigError: there is a data set, a ``beir`` folder or a ``qrels.txt`` of somebody else.
    """
    file = folder / FILE
    if file.is_file():
        with file.open("rb") as stream:
            if stream.read(len(_MADE)) == _MADE.encode():
                return
    taken = [name for name in (FILE, BEIR, QRELS) if (folder / name).exists()]
    if taken:
        raise ConfigError(
            f"{folder} already holds {' and '.join(taken)}, which dartboard mine did not write and would "
            "overwrite: name another folder, or a new one",
            field="out",
        )


def dump(mined: Mined) -> str:
    """The text of the YAML file."""
    return _yaml_text(plain(mined))


def _yaml_text(written: dict[str, Any]) -> str:
    yaml = _yaml()
    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        """Quotes all texts but keys, and never writes an alias."""

        def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:
            node = super().represent_mapping(tag, mapping, flow_style)
            for key, _ in node.value:
                key.style = None
            return node

        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(str, _text_node)
    body = yaml.dump(
        {
            "format": FORMAT,
            "version": VERSION,
            **written,
            "pairs": written.get("pairs", []),
            END: {"pairs": len(written.get("pairs", [])), "sha256": ""},
        },
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=10**9,
        default_flow_style=False,
    )
    text = f"{_HEAD}{body.removesuffix(_MARK)}"
    return f'{text.removesuffix(_OPEN)}sha256: "{digest_of(text)}"\n'


def digest_of(text: str) -> str:
    """sha256 of all lines before the end, whichever way the lines end."""
    whole = re.split(rf"^{END}:", text.replace("\r\n", "\n"), maxsplit=1, flags=re.MULTILINE)[0]
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


def write_atomically(path: Path, text: str) -> None:
    """Replace a file by a whole new one, or leave it as it is."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _text_node(dumper: Any, text: str) -> Any:
    as_block = "\n" in text and _BLOCK.fullmatch(text) is not None and _NO_BLOCK.search(text) is None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if as_block else '"')


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:  # pragma: no cover - the tests have it
        raise MissingExtraError("pyyaml", "eval", "Writing a mined data set") from error
    return yaml


BEIR, QRELS = "beir", "qrels.txt"
EXPORTS = (
    QRELS,
    *(f"{BEIR}/{name}" for name in ("corpus.jsonl", "queries.jsonl", "pools.jsonl")),
    *(f"{BEIR}/qrels/{name}" for name in ("test.tsv", "subtopics.txt")),
)
"""The files for other tools; each is replaced by name, and whatever else is in these folders stays."""

_GAP = re.compile(r"[\s%]")


def _export(data: TextDataset, folder: Path) -> None:
    """The BEIR folder and the TREC qrels, made from the same plain data as the YAML file."""
    with tempfile.TemporaryDirectory(prefix=".export-", dir=folder) as name:
        part = Path(name)
        fitting = without_gaps(data)
        write_beir(fitting, part / BEIR)
        write_qrels(fitting.qrels, part / QRELS)
        (folder / BEIR / "qrels").mkdir(parents=True, exist_ok=True)
        for one in EXPORTS:
            if (part / one).exists():
                (part / one).replace(folder / one)
            else:
                (folder / one).unlink(missing_ok=True)


def without_gaps(data: TextDataset) -> TextDataset:
    """The same under names without white space, which would end a column of these files."""

    def many(ids: list[str]) -> list[str]:
        return [escaped(one) for one in ids]

    return TextDataset(
        name=data.name,
        passages=[Passage(escaped(one.id), one.text, one.title, one.metadata) for one in data.passages],
        queries={escaped(query): text for query, text in data.queries.items()},
        qrels={
            escaped(query): {escaped(one): grade for one, grade in judged.items()}
            for query, judged in data.qrels.items()
        },
        facets={
            escaped(query): {facet: many(ids) for facet, ids in by_facet.items()}
            for query, by_facet in data.facets.items()
        },
        kernels={escaped(query): many(ids) for query, ids in data.kernels.items()},
        answers={escaped(query): answers for query, answers in data.answers.items()},
        pools={escaped(query): many(ids) for query, ids in data.pools.items()},
        metadata=data.metadata,
    )


def escaped(name: str) -> str:
    """White space and the sign that stands for it by their bytes, as in addresses."""
    return _GAP.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), name)
