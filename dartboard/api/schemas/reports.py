"""Reports of ``dartboard eval``: what the list shows of each."""

from typing import Literal

from pydantic import Field

from dartboard.api.schemas.common import Answer

_ROW = {
    "system": "cosine",
    "mean": 0.774,
    "low": 0.73,
    "high": 0.815,
    "difference": -0.021,
    "verdict": "behind",
    "wins": 12,
    "ties": 160,
    "losses": 28,
}
_HEADLINE = {
    "dataset": "scifact",
    "chunks": 5183,
    "judged": 300,
    "measure": "nDCG@5",
    "reference": "dartboard",
    "sentences": ["dartboard reaches nDCG@5 .795 …"],
    "rows": [_ROW],
}
_ENTRY = {
    "name": "scifact-quick",
    "created": 1763265600.0,
    "page": True,
    "files": ["results.json", "report.md", "timings.json"],
    "headlines": [_HEADLINE],
}


class ReportRow(Answer):
    """A system in the headline table."""

    system: str = Field(description="The system.", examples=["dartboard"])
    mean: float = Field(description="Its mean of the headline measure.", examples=[0.795])
    low: float = Field(description="Lower end of the 95 % interval.", examples=[0.751])
    high: float = Field(description="Upper end of the 95 % interval.", examples=[0.836])
    difference: float = Field(description="Against the reference.", examples=[-0.021])
    verdict: Literal["reference", "ahead", "behind", "no difference"] = Field(
        description="What the corrected test says of it.", examples=["behind"]
    )
    wins: int = Field(description="Queries on which it beats the reference.", examples=[12])
    ties: int = Field(description="Queries on which both are alike.", examples=[160])
    losses: int = Field(description="Queries on which the reference beats it.", examples=[28])


class ReportHeadline(Answer):
    """One data set of a report."""

    dataset: str = Field(description="The data set.", examples=["scifact"])
    chunks: int = Field(description="Passages in its corpus.", examples=[5183])
    judged: int = Field(description="Queries with known answers.", examples=[300])
    measure: str = Field(description="The headline measure, as a reader calls it.", examples=["nDCG@5"])
    reference: str = Field(description="The system that others are compared with.", examples=["dartboard"])
    sentences: list[str] = Field(
        description="The result in words.", examples=[["dartboard reaches nDCG@5 .795 …"]]
    )
    rows: list[ReportRow] = Field(description="Best first.", examples=[[_ROW]])


class ReportEntry(Answer):
    """A report that is there."""

    name: str = Field(description="The folder that it lies in.", examples=["scifact-quick"])
    created: float = Field(description="When it was written, in seconds since 1970.", examples=[1763265600.0])
    page: bool = Field(description="Whether it has a page to look at.", examples=[True])
    files: list[str] = Field(
        description="What can be downloaded.", examples=[["results.json", "report.md", "timings.json"]]
    )
    headlines: list[ReportHeadline] = Field(description="One a data set.", examples=[[_HEADLINE]])
    problem: str | None = Field(
        None,
        description="Why there are no figures, where there are none.",
        examples=[None, "is not finished"],
    )


class ReportList(Answer):
    """The reports, newest first."""

    reports: list[ReportEntry] = Field(description="Newest first.", examples=[[_ENTRY]])
    more: int = Field(description="Older reports that the list leaves off.", examples=[0])


class ReportTicket(Answer):
    """An address that shows a report for a few minutes without a key: a frame cannot send one."""

    url: str = Field(
        description="Where the page is.", examples=["/api/dartboard/reports/scifact-quick?ticket=1763…"]
    )
    seconds: int = Field(description="How long the address is good for.", examples=[300])
