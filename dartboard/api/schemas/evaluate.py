"""Measuring retrieval on a data set."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dartboard.api.schemas.common import Answer, Model, Sigma, of_form
from dartboard.api.schemas.retrieve import Count, RerankerName

_METRIC = r"^[a-z_0-9]+(@[1-9][0-9]{0,2})?$"
_SYSTEM = (
    r"^(quick|cosine|random|oracle|dense|bm25|colbert|hybrid|rrf"
    r"|pyversity-(dpp|cover)|(mmr|dedup)-[0-9]*\.?[0-9]+"
    r"|dartboard(-hybrid|-crossencoder|-[0-9]*\.?[0-9]+)?)$"
)
MetricName = Annotated[
    str,
    Field(max_length=40),
    of_form(_METRIC, "should be a measure such as ndcg or ndcg@10"),
]
SystemName = Annotated[
    str,
    Field(max_length=40),
    of_form(
        _SYSTEM,
        "should be a system such as cosine, mmr-0.7, dedup-0.90, dartboard, dartboard-0.09, dense, bm25, "
        "colbert, hybrid, rrf, random or oracle",
    ),
]


class EvaluateConfig(Model):
    """What is evaluated."""

    sigma: Sigma = Field("auto", description="Spread of a question; as in `/retrieve`.", examples=["auto"])
    top_k: Count = Field(5, description="How many passages an answer has.", examples=[5])
    triage_k: Count = Field(100, description="How many candidates to pick from.", examples=[100])
    reranker_type: RerankerName = Field(
        "cosine", description="Who says how close two texts are; as in `/retrieve`.", examples=["cosine"]
    )


class EvaluateRequest(Model):
    """A data set, a configuration, and what to measure."""

    dataset_name: Annotated[str, Field(min_length=1, max_length=200)] = Field(
        description="A name that `GET /datasets` lists.", examples=["synthetic_clustered"]
    )
    config: EvaluateConfig = Field(
        default_factory=lambda: EvaluateConfig.model_validate({}),
        description="What is evaluated.",
        examples=[{"sigma": "auto", "top_k": 5}],
    )
    metrics: list[MetricName] = Field(
        ["headline", "ndcg", "precision", "recall", "diversity"],
        min_length=1,
        max_length=30,
        description="Measures by name, at `top_k` unless they say otherwise (`ndcg@10`): precision, recall, "
        "hit_rate, mrr, map, ndcg, set_recall, success, jaccard, subtopic_recall, alpha_ndcg, diversity, "
        "intra_list_distance, cluster_coverage, distinct_share, f1_diversity; `headline` is the one that "
        "suits the judgements of the data set. Where passages are copies of one another, precision, recall, "
        "map and ndcg count each copy, and the answer also has `distinct_precision` …, which count "
        "copies once.",
        examples=[["ndcg", "precision", "diversity"]],
    )
    systems: list[SystemName] = Field(
        [],
        max_length=20,
        description="Others to compare with: cosine, mmr-0.7, dedup-0.90, random, oracle, dartboard-0.09 …; "
        "over the whole corpus dense, bm25, colbert, hybrid, rrf.",
        examples=[["cosine", "mmr-0.7"]],
    )
    background: bool = Field(False, description="Whether to answer at once with a job.", examples=[False])


class EvaluateResponse(Answer):
    """What was measured."""

    dataset: str = Field(description="The data set.", examples=["synthetic_clustered"])
    metrics: dict[str, float] = Field(
        description="The mean of each measure over the queries.",
        examples=[{"ndcg@5": 0.763, "precision@5": 0.842, "diversity": 0.671}],
    )
    headline: str = Field(
        description="The measure that suits the judgements of the data set; reports of `dartboard eval` lead "
        "with it, too.",
        examples=["ndcg@5"],
    )
    num_queries: int = Field(description="Queries that are judged.", examples=[100])
    execution_time_ms: float = Field(description="Milliseconds of work.", examples=[1230.0])
    config: dict[str, Any] = Field(
        description="What was evaluated.", examples=[{"sigma": "auto", "top_k": 5, "reranker_type": "cosine"}]
    )
    systems: dict[str, dict[str, float]] = Field(
        description="The same measures of the systems to compare with.",
        examples=[{"cosine": {"ndcg@5": 0.74, "precision@5": 0.83, "diversity": 0.41}}],
    )
    skipped: dict[str, str] = Field(
        description="Systems that cannot be run on this data set, and why.", examples=[{}]
    )


class DatasetEntry(Answer):
    """A data set that is there."""

    name: str = Field(description="Its name, for `/evaluate`.", examples=["synthetic_clustered"])
    num_chunks: int = Field(description="Passages.", examples=[100])
    num_queries: int = Field(description="Judged queries.", examples=[20])
    type: Literal["synthetic", "real"] = Field(description="Made, or collected.", examples=["synthetic"])
    format: str = Field(description="How it is written.", examples=["synthetic"])
    splits: list[str] = Field(description="Its splits, the one that is taken first.", examples=[[]])
    usable: bool = Field(description="Whether it can be read.", examples=[True])


class DatasetList(Answer):
    """The data sets that are there."""

    datasets: list[DatasetEntry] = Field(description="By name, synthetic ones first.", examples=[[]])


class DemoQuestion(Answer):
    """A question to the demo corpus."""

    text: str = Field(description="The question.", examples=["Why are our consumers falling behind?"])
    wants: str = Field(description="What a good set of passages covers.", examples=["five causes, once each"])


class DemoQuestions(Answer):
    """Questions to begin with."""

    questions: list[DemoQuestion] = Field(description="The main one first.", examples=[[]])
