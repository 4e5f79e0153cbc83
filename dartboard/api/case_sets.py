"""Evaluation cases in a folder that ``dartboard eval`` reads: BEIR's layout.

::

    HOME/cases/NAME/corpus.jsonl      {"_id", "title", "text"}: every passage that some case looked at
                    queries.jsonl     {"_id", "text", "metadata": {"collection", "candidates", "note"}}
                    qrels/test.tsv    query-id, corpus-id, score: the passages marked

A passage's title is empty, since its text is what was embedded. Evaluation ranks the passages of the set by
their vectors alone, whatever retriever found them; each case says so in its ``note``, since it may then pick
others than the screen did that it was saved from. Files are replaced one by one, whole, in an
order that leaves a data set that can be read after each step: what judgements speak of is there before they
are, and goes after them. Whoever writes holds a lock on the folder above.
"""

import hashlib
import io
import json
import os
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dartboard.api.errors import Conflict, Invalid, NotFound
from dartboard.datasets.records import json_lines
from dartboard.datasets.text_dataset import Qrels
from dartboard.datasets.trec import read_qrels
from dartboard.file_lock import file_lock

MOST_PASSAGES = 100_000
NOTE = (
    "Evaluation ranks all passages of this set by vectors alone; where the collection's retriever also reads "
    "words, its picks for this question may be others than those on screen when the case was saved."
)
"""What a case says of itself to whoever opens the file."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.|zip\Z|\Z)){0,63}")


@dataclass(frozen=True, slots=True)
class Case:
    """A question with the ids of the passages that were marked, and of those that were looked at."""

    query: str
    relevant: Sequence[str]
    candidates: Sequence[str]


@dataclass(slots=True)
class Cases:
    """A set in memory; ``corpus`` holds texts by id."""

    collection: str
    cases: dict[str, Case] = field(default_factory=dict)
    corpus: dict[str, str] = field(default_factory=dict)


def query_id(query: str) -> str:
    """The same question, whatever its spaces and letter case, has the same id."""
    words = " ".join(unicodedata.normalize("NFC", query).casefold().split())
    return f"q-{hashlib.sha256(words.encode()).hexdigest()[:12]}"


class CaseSets:
    """The sets below one folder."""

    def __init__(self, home: Path) -> None:
        self._above = home / "cases"

    def names(self) -> list[str]:
        """The sets that are there, sorted."""
        if not self._above.is_dir():
            return []
        return sorted(path.name for path in self._above.iterdir() if self._is_set(path.name))

    def folder(self, name: str) -> Path:
        """Where a set lies, or ``NotFound``."""
        if not self._is_set(name):
            raise NotFound("there is no such set of cases: GET /api/dartboard/cases lists them")
        return self._above / name

    def read(self, name: str) -> Cases:
        """A set as it is on disk."""
        return _read(self.folder(name))

    def save(self, name: str, collection: str, case: Case, texts: Mapping[str, str]) -> tuple[Cases, bool]:
        """Add a case, or replace the one of the same question; the set now, and whether it was there."""
        with self._writing():
            there = self._is_set(name)
            found = self.read(name) if there else Cases(collection)
            if found.collection != collection:
                raise Conflict("this set holds cases of another collection: choose another name")
            identity = query_id(case.query)
            before = found.cases.get(identity)
            looked_at = [*(before.candidates if before else ()), *case.candidates, *case.relevant]
            found.corpus.update((one, texts[one]) for one in looked_at if one in texts)
            if len(found.corpus) > MOST_PASSAGES:
                raise Conflict(f"a set holds at most {MOST_PASSAGES:,} passages: begin another one")
            found.cases[identity] = Case(case.query, case.relevant, list(dict.fromkeys(looked_at)))
            self._write(name, found, growing=True)
            return found, before is not None

    def delete(self, name: str, identity: str) -> None:
        """Take a case out, with the passages that no other one looked at; an empty set goes altogether."""
        with self._writing():
            found = self.read(name)
            if found.cases.pop(identity, None) is None:
                raise NotFound("there is no such case in the set")
            if not found.cases:
                shutil.rmtree(self.folder(name))
                return
            needed = {one for case in found.cases.values() for one in case.candidates}
            found.corpus = {one: text for one, text in found.corpus.items() if one in needed}
            self._write(name, found, growing=False)

    def packed(self, name: str) -> bytes:
        """The set as a ZIP file with one folder; the same set gives the same bytes."""
        folder = self.folder(name)
        buffer = io.BytesIO()
        with self._writing(), zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in _FILES:
                entry = zipfile.ZipInfo(f"{name}/{file}")
                entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
                archive.writestr(entry, (folder / file).read_bytes())
        return buffer.getvalue()

    def _is_set(self, name: str) -> bool:
        folder = self._above / name
        return bool(
            _NAME.fullmatch(name)
            and not folder.is_symlink()
            and all((folder / file).is_file() and not (folder / file).is_symlink() for file in _FILES)
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._above.mkdir(parents=True, exist_ok=True)
        with file_lock(self._above / ".lock"):
            yield

    def _write(self, name: str, found: Cases, *, growing: bool) -> None:
        if not _NAME.fullmatch(name):
            raise Invalid("a name is letters, digits, dots, dashes and underscores", field="name")
        folder = self._above / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        contents = list(zip(_FILES, (_corpus(found), _queries(found), _judgements(found)), strict=True))
        for file, content in contents if growing else reversed(contents):
            _replace(folder / file, content)


_FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")


def _read(folder: Path) -> Cases:
    corpus = {row.identifier("_id"): row.text("text") for row in json_lines(folder / _FILES[0])}
    qrels: Qrels = read_qrels(folder / _FILES[2])
    found = Cases("", corpus=corpus)
    for row in json_lines(folder / _FILES[1]):
        about = row.mapping("metadata")
        identity = row.identifier("_id")
        candidates = about.get("candidates", [])
        if not isinstance(candidates, list) or not isinstance(about.get("collection"), str):
            raise row.place.error("metadata needs the collection and the candidates")
        found.collection = about["collection"]
        if identity in qrels:  # one without judgements was being saved, or removed, when the power went
            found.cases[identity] = Case(row.text("text"), list(qrels[identity]), candidates)
    return found


def _corpus(found: Cases) -> str:
    return _lines({"_id": one, "title": "", "text": text} for one, text in found.corpus.items())


def _queries(found: Cases) -> str:
    return _lines(
        {
            "_id": identity,
            "text": case.query,
            "metadata": {
                "collection": found.collection,
                "candidates": list(case.candidates),
                "note": NOTE,
            },
        }
        for identity, case in found.cases.items()
    )


def _judgements(found: Cases) -> str:
    rows = [f"{identity}\t{one}\t1\n" for identity, case in found.cases.items() for one in case.relevant]
    return "query-id\tcorpus-id\tscore\n" + "".join(rows)


def _lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _replace(path: Path, content: str) -> None:
    """Put a whole new file in the place of the old one."""
    fresh = path.with_name(f".{path.name}.new")
    with fresh.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(path)


def check_id(identity: str) -> bool:
    """Whether BEIR's files can hold an id: no tab or line end, no space around it."""
    return identity == identity.strip() and not set(identity) & set("\t\r\n")
