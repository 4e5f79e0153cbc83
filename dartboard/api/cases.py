"""Questions with marked passages, kept as a data set: what went wrong today is measured tomorrow."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from dartboard.api.auth import reader, writer
from dartboard.api.case_sets import Case, CaseSets, check_id, query_id
from dartboard.api.errors import Invalid
from dartboard.api.json_body import JsonRoute
from dartboard.api.schemas.cases import CaseList, CaseRequest, CaseSaved, CaseSet, SavedCase
from dartboard.api.service import Service, service_of
from dartboard.errors import DatasetError

router = APIRouter(prefix="/api/dartboard", tags=["cases"], route_class=JsonRoute)

Name = Annotated[str, Path(description="The set's name.", examples=["my-cases"])]
QueryId = Annotated[str, Path(description="The question's id in the set.", examples=["q1"])]


@router.post(
    "/cases",
    operation_id="save_case",
    status_code=201,
    dependencies=[Depends(writer)],
    response_model=CaseSaved,
)
async def save(body: CaseRequest, service: Annotated[Service, Depends(service_of)]) -> CaseSaved:
    """Keep a question with its marked passages as an evaluation case.

    The set is a BEIR folder that `dartboard eval --dataset NAME --data HOME/cases` reads. The same question
    again replaces its judgements. Evaluation ranks all passages of the set by vectors alone, so where the
    collection is searched by words too, it may pick others than were on screen.
    """
    return await service.run(_save, service, body)


@router.get("/cases", operation_id="list_cases", dependencies=[Depends(reader)], response_model=CaseList)
async def listed(service: Annotated[Service, Depends(service_of)]) -> CaseList:
    """The sets of saved cases."""
    return await service.run(_list, service)


@router.get(
    "/cases/{name}.zip",
    operation_id="download_cases",
    dependencies=[Depends(reader)],
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "A BEIR folder."}},
)
async def download(name: Name, service: Annotated[Service, Depends(service_of)]) -> Response:
    """A set as a ZIP file: unpack it into the folder of data sets, and `dartboard eval` finds it."""
    content = await service.run(CaseSets(service.settings.home).packed, name)
    headers = {"Content-Disposition": f'attachment; filename="{name}.zip"'}
    return Response(content, headers=headers, media_type="application/zip")


@router.delete(
    "/cases/{name}/{query_id}", operation_id="delete_case", status_code=204, dependencies=[Depends(writer)]
)
async def delete(name: Name, query_id: QueryId, service: Annotated[Service, Depends(service_of)]) -> None:
    """Take a case out of its set, with the passages that only it looked at."""
    await service.run(CaseSets(service.settings.home).delete, name, query_id)


def _save(service: Service, body: CaseRequest) -> CaseSaved:
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


def _list(service: Service) -> CaseList:
    sets = CaseSets(service.settings.home)
    return CaseList(sets=[_described(sets, name) for name in sets.names()])


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
