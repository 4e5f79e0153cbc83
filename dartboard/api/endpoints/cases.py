"""Questions with marked passages, kept as a data set: what went wrong today is measured tomorrow."""

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import AfterValidator, Field
from starlette.responses import Response

from dartboard.api.case_sets import Case, CaseSets, check_id, query_id
from dartboard.api.errors import Invalid
from dartboard.api.guards.authentication import READ, WRITE
from dartboard.api.json_body import JsonRoute
from dartboard.api.schemas import Answer, CollectionName, Id, Model, TextPattern, Words
from dartboard.api.service import TheService, in_worker
from dartboard.errors import DatasetError

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


def _no_dots(name: str) -> str:
    if ".." in name or name.endswith((".", ".zip")):
        raise ValueError("a name has no two dots in a row, and does not end in a dot or .zip")
    return name


CaseSetName = Annotated[
    str,
    TextPattern(
        NAME, "should be 1 to 64 letters, digits, dots, dashes or underscores, a letter or digit first"
    ),
    AfterValidator(_no_dots),
]


class CaseRequest(Model):
    """A question, the passages that answer it, and those that were looked at."""

    name: CaseSetName = Field(
        description="The set that the case goes into, made with its first one; letters, digits, .-_.",
        examples=["support"],
    )
    collection: CollectionName | None = Field(
        None, description="Where the passages are; the default collection unless given.", examples=["demo"]
    )
    query: Words = Field(
        max_length=20_000, description="The question.", examples=["Why is my consumer slow?"]
    )
    relevant: list[Id] = Field(
        min_length=1,
        max_length=1000,
        description="Chunks that answer it, marked by a person.",
        examples=[["slow-01"]],
    )
    candidates: list[Id] = Field(
        [],
        max_length=10_000,
        description="All chunks that were shown: with the relevant ones they are the corpus to search.",
        examples=[["slow-01", "slow-02", "rebalance-01"]],
    )


class CaseSaved(Answer):
    """Where a case went."""

    name: str = Field(description="The set.", examples=["support"])
    query_id: str = Field(
        description="The case; the same question has the same id.", examples=["q-1f0c9a7b3d5e"]
    )
    replaced: bool = Field(description="Whether the question was there already.", examples=[False])
    relevant: int = Field(description="Passages marked.", examples=[1])
    queries: int = Field(description="Cases in the set now.", examples=[8])
    passages: int = Field(description="Passages in the set now.", examples=[412])


class SavedCase(Answer):
    """One case of a set."""

    query_id: str = Field(description="Its id.", examples=["q-1f0c9a7b3d5e"])
    query: str = Field(description="The question.", examples=["Why is my consumer slow?"])
    relevant: list[str] = Field(description="Chunks marked as answers.", examples=[["slow-01"]])
    candidates: int = Field(description="Chunks that were looked at.", examples=[100])


class CaseSet(Answer):
    """A set of cases: a data set that ``dartboard eval`` reads."""

    name: str = Field(description="Its name, also as a data set.", examples=["support"])
    collection: str = Field(description="Where its passages come from.", examples=["demo"])
    passages: int = Field(description="Passages in its corpus.", examples=[412])
    updated: float = Field(
        description="When it last changed, in seconds since 1970.", examples=[1763265600.0]
    )
    cases: list[SavedCase] = Field(description="In the order in which they were first saved.")
    problem: str | None = Field(
        None,
        description="Why it cannot be read, where it cannot.",
        examples=[None, "queries.jsonl, line 3: not JSON"],
    )


class CaseList(Answer):
    """The sets that are there."""

    sets: list[CaseSet] = Field(
        description="By name.",
    )


router = APIRouter(prefix="/api/dartboard", tags=["cases"], route_class=JsonRoute)

Name = Annotated[str, Path(description="The set's name.", examples=["my-cases"])]
QueryId = Annotated[str, Path(description="The question's id in the set.", examples=["q1"])]


@router.post("/cases", operation_id="save_case", status_code=201, dependencies=WRITE)
@in_worker
def save(body: CaseRequest, service: TheService) -> CaseSaved:
    """Keep a question with its marked passages as an evaluation case.

    The set is a BEIR folder that `dartboard eval --dataset NAME --data HOME/cases` reads. The same question
    again replaces its judgements. Evaluation ranks all passages of the set by vectors alone, so where the
    collection is searched by words too, it may pick others than were on screen.
    """
    engine = service.engines.get(body.collection)
    texts: dict[str, str] = {}
    for field in ("relevant", "candidates"):
        asked: list[str] = getattr(body, field)
        if unfit := [at for at, one in enumerate(asked) if not check_id(one)]:
            raise Invalid(
                "an id with a tab, a line end or outer space cannot be kept", field=f"{field}.{unfit[0]}"
            )
        texts.update((record.id, record.text) for record in engine.collection.get(asked))
        if unknown := [at for at, one in enumerate(asked) if one not in texts]:
            raise Invalid("there is no such chunk in the collection", field=f"{field}.{unknown[0]}")
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
@in_worker
def listed(service: TheService) -> CaseList:
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
@in_worker
def download(name: Name, service: TheService) -> Response:
    """A set as a ZIP file: unpack it into the folder of data sets, and `dartboard eval` finds it."""
    content = CaseSets(service.settings.home).packed(name)
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(content, headers=headers, media_type="application/zip")


@router.delete("/cases/{name}/{query_id}", operation_id="delete_case", status_code=204, dependencies=WRITE)
@in_worker
def delete(name: Name, query_id: QueryId, service: TheService) -> None:
    """Take a case out of its set, with the passages that only it looked at."""
    CaseSets(service.settings.home).delete(name, query_id)


def _described(sets: CaseSets, name: str) -> CaseSet:
    updated = (sets.folder(name) / "qrels" / "test.tsv").stat().st_mtime
    try:
        found = sets.read(name)
    except DatasetError as error:
        said = str(error).replace(f"{sets.folder(name)}/", "")
        return CaseSet(name=name, collection="", passages=0, updated=updated, cases=[], problem=said)
    cases = [
        SavedCase(
            query_id=identity,
            query=case.query,
            relevant=list(case.relevant),
            candidates=len(case.candidates),
        )
        for identity, case in found.cases.items()
    ]
    return CaseSet(
        name=name,
        collection=found.collection,
        passages=len(found.corpus),
        updated=updated,
        cases=cases,
        problem=None,
    )
