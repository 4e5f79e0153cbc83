"""Evaluation cases: questions with marked passages, as a folder that ``dartboard eval`` reads (BEIR).

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
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi import Path as PathParameter
from pydantic import AfterValidator, BaseModel, Field
from starlette.responses import Response

from dartboard.api.authentication import READ, WRITE
from dartboard.api.errors import Conflict, Invalid, NotFound
from dartboard.api.schemas import CollectionName, Id, Listed, RequestModel, Text, json_body
from dartboard.api.service import ServiceDep, in_thread
from dartboard.datasets.records import json_lines
from dartboard.datasets.trec import read_qrels
from dartboard.errors import DatasetError
from dartboard.file_lock import file_lock

MOST_PASSAGES = 100_000
NOTE = (
    "Evaluation ranks all passages of this set by vectors alone; where the collection's retriever also reads "
    "words, its picks for this question may be others than those on screen when the case was saved."
)
"""What a case says of itself to whoever opens the file."""
_NAME = re.compile("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")


def is_name(name: str) -> bool:
    """Whether a set may have this name, which is also that of its folder and of its archive."""
    return bool(_NAME.fullmatch(name)) and ".." not in name and not name.endswith((".", ".zip"))


def _checked_name(name: str) -> str:
    if not is_name(name):
        raise ValueError(
            "should be 1 to 64 letters, digits, dots, dashes or underscores, a letter or digit first, "
            "and neither two dots in a row nor a dot or .zip at the end"
        )
    return name


CaseSetName = Annotated[str, AfterValidator(_checked_name)]


class CaseRequest(RequestModel):
    """A question, the passages that answer it, and those that were looked at."""

    name: CaseSetName = Field(description="The set that the case goes into, made with its first one.")
    collection: CollectionName | None = Field(None, description="Where the passages are.")
    query: Text = Field(max_length=20_000)
    relevant: Listed[Id] = Field(
        min_length=1, max_length=1000, description="Chunks that answer it, marked by a person."
    )
    candidates: Listed[Id] = Field(
        [], max_length=10_000, description="All chunks that were shown: with the relevant ones the corpus."
    )


class CaseSaved(BaseModel):
    """Where a case went. The same question has the same id."""

    name: str
    query_id: str
    replaced: bool = Field(description="Whether the question was there already.")
    relevant: int
    queries: int = Field(description="Cases in the set now.")
    passages: int = Field(description="Passages in the set now.")


class SavedCase(BaseModel):
    """One case of a set; `candidates` counts the chunks that were looked at."""

    query_id: str
    query: str
    relevant: list[str]
    candidates: int


class CaseSet(BaseModel):
    """A set of cases: a data set that ``dartboard eval`` reads."""

    name: str
    collection: str
    passages: int
    updated: float = Field(description="When it last changed, in seconds since 1970.")
    cases: list[SavedCase]
    problem: str | None = Field(None, description="Why it cannot be read, where it cannot.")


class CaseList(BaseModel):
    """The sets that are there, by name."""

    sets: list[CaseSet]


router = APIRouter(prefix="/api/dartboard", tags=["cases"])

Name = Annotated[str, PathParameter(description="The set's name.")]
QueryId = Annotated[str, PathParameter(description="The question's id in the set.")]


@router.post("/cases", operation_id="save_case", status_code=201, dependencies=WRITE)
@in_thread
def save(service: ServiceDep, body: Annotated[CaseRequest, json_body(CaseRequest)]) -> CaseSaved:
    """Keep a question with its marked passages as an evaluation case.

    The set is a BEIR folder that `dartboard eval --dataset NAME --data HOME/cases` reads. The same question
    again replaces its judgements. Evaluation ranks all passages of the set by vectors alone, so where the
    collection is searched by words too, it may pick others than were on screen.
    """
    engine = service.engines.get(body.collection)
    texts: dict[str, str] = {}
    for name in ("relevant", "candidates"):
        asked: list[str] = getattr(body, name)
        if unfit := [at for at, one in enumerate(asked) if one != one.strip() or set(one) & set("\t\r\n")]:
            raise Invalid(
                "an id with a tab, a line end or outer space cannot be kept", field=f"{name}.{unfit[0]}"
            )
        texts.update((record.id, record.text) for record in engine.collection.get(asked))
        if unknown := [at for at, one in enumerate(asked) if one not in texts]:
            raise Invalid("there is no such chunk in the collection", field=f"{name}.{unknown[0]}")
    relevant = list(dict.fromkeys(body.relevant))
    case = Case(body.query.strip(), relevant, list(dict.fromkeys(body.candidates)))
    found, replaced = CaseSets(service.settings.home).save(body.name, engine.name, case, texts)
    return CaseSaved(
        name=body.name,
        query_id=query_id(case.query),
        replaced=replaced,
        relevant=len(relevant),
        queries=len(found.cases),
        passages=len(found.corpus),
    )


@router.get("/cases", operation_id="list_cases", dependencies=READ)
@in_thread
def listed(service: ServiceDep) -> CaseList:
    """The sets of saved cases."""
    sets = CaseSets(service.settings.home)
    return CaseList(sets=[_described(sets, name) for name in sets.names()])


@router.get(
    "/cases/{name}.zip",
    operation_id="download_cases",
    dependencies=READ,
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "A BEIR folder."}},
)
@in_thread
def download(name: Name, service: ServiceDep) -> Response:
    """A set as a ZIP file: unpack it into the folder of data sets, and `dartboard eval` finds it."""
    content = CaseSets(service.settings.home).packed(name)
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(content, headers=headers, media_type="application/zip")


@router.delete("/cases/{name}/{query_id}", operation_id="delete_case", status_code=204, dependencies=WRITE)
@in_thread
def delete(name: Name, query_id: QueryId, service: ServiceDep) -> None:
    """Take a case out of its set, with the passages that only it looked at."""
    CaseSets(service.settings.home).delete(name, query_id)


def _described(sets: "CaseSets", name: str) -> CaseSet:
    updated = (sets.folder(name) / "qrels" / "test.tsv").stat().st_mtime
    try:
        found = sets.read(name)
    except DatasetError as error:
        said = str(error).replace(f"{sets.folder(name)}/", "")
        return CaseSet(name=name, collection="", passages=0, updated=updated, cases=[], problem=said)
    cases = [
        SavedCase(
            query_id=id, query=case.query, relevant=list(case.relevant), candidates=len(case.candidates)
        )
        for id, case in found.cases.items()
    ]
    return CaseSet(
        name=name,
        collection=found.collection,
        passages=len(found.corpus),
        updated=updated,
        cases=cases,
        problem=None,
    )


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
            is_name(name)
            and not folder.is_symlink()
            and all((folder / file).is_file() and not (folder / file).is_symlink() for file in _FILES)
        )

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._above.mkdir(parents=True, exist_ok=True)
        with file_lock(self._above / ".lock"):
            yield

    def _write(self, name: str, found: Cases, *, growing: bool) -> None:
        if not is_name(name):
            raise Invalid("a name is letters, digits, dots, dashes and underscores", field="name")
        folder = self._above / name
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        cases = found.cases.items()
        corpus = _lines({"_id": one, "title": "", "text": text} for one, text in found.corpus.items())
        queries = _lines(
            {
                "_id": id,
                "text": case.query,
                "metadata": {
                    "collection": found.collection,
                    "candidates": list(case.candidates),
                    "note": NOTE,
                },
            }
            for id, case in cases
        )
        rows = [f"{id}\t{one}\t1\n" for id, case in cases for one in case.relevant]
        contents = (corpus, queries, "".join(["query-id\tcorpus-id\tscore\n", *rows]))
        files = list(zip(_FILES, contents, strict=True))
        for file, content in files if growing else reversed(files):
            _replace(folder / file, content)


def _read(folder: Path) -> Cases:
    corpus = {row.identifier("_id"): row.text("text") for row in json_lines(folder / _FILES[0])}
    qrels = read_qrels(folder / _FILES[2])
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
