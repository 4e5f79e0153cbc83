"""Questions with their right passages marked, kept as evaluation cases."""

from typing import Annotated

from pydantic import AfterValidator, Field

from dartboard.api.schemas.common import Answer, CollectionName, Id, Model, Words, of_form

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


_CASE = {
    "query_id": "q-1f0c9a7b3d5e",
    "query": "Why is my consumer slow?",
    "relevant": ["slow-01"],
    "candidates": 100,
}


def _no_dots(name: str) -> str:
    if ".." in name or name.endswith((".", ".zip")):
        raise ValueError("a name has no two dots in a row, and does not end in a dot or .zip")
    return name


CaseSetName = Annotated[
    str,
    of_form(NAME, "should be 1 to 64 letters, digits, dots, dashes or underscores, a letter or digit first"),
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
    cases: list[SavedCase] = Field(
        description="In the order in which they were first saved.", examples=[[_CASE]]
    )
    problem: str | None = Field(
        None,
        description="Why it cannot be read, where it cannot.",
        examples=[None, "queries.jsonl, line 3: not JSON"],
    )


class CaseList(Answer):
    """The sets that are there."""

    sets: list[CaseSet] = Field(
        description="By name.",
        examples=[
            [
                {
                    "name": "support",
                    "collection": "demo",
                    "passages": 412,
                    "updated": 1763265600.0,
                    "cases": [_CASE],
                }
            ]
        ],
    )
