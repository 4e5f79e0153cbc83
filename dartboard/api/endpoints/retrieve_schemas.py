"""Questions and the passages that answer them."""

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from dartboard.api.schemas import Answer, CollectionName, Id, Metadata, Model, Sigma, Words

RerankerName = Literal["cosine", "crossencoder", "hybrid"]
MethodName = Literal["dartboard", "mmr", "top_k", "near_duplicate_filter", "random"]
Count = Annotated[int, Field(ge=1)]
Query = Annotated[
    Words,
    Field(
        description="What to ask, in the model's tokens no longer than the service's limit.",
        examples=["Why are our consumers falling behind?"],
    ),
]
Reranker = Annotated[
    RerankerName,
    Field(
        description="Who says how close two texts are: the vectors, a pair scorer, or both.",
        examples=["cosine"],
    ),
]
AskedCollection = Annotated[
    CollectionName | None,
    Field(description="The collection to ask; the service's own where none is named.", examples=["demo"]),
]

_FILTER_TEXT = 'year >= 2020 and lang in ["en", "de"]'


class SearchRequest(Model):
    """How passages are found and picked."""

    top_k: Count | None = Field(
        None, description="How many passages; 5 where neither this nor `token_budget` is given.", examples=[5]
    )
    token_budget: Count | None = Field(
        None,
        description="As many passages as fit into so many tokens of the model; with `top_k`, both hold.",
        examples=[1500],
    )
    sigma: Sigma = Field(
        "auto",
        description="Spread of a question around what it means, on the scaled cosine distance; `auto` takes "
        "it from the collection's calibration, else from the candidates.",
        examples=["auto", 0.09],
    )
    reranker_type: Reranker = "cosine"
    method: MethodName = Field(
        "dartboard",
        description="Who picks from the candidates; the others are there to compare.",
        examples=["dartboard"],
    )
    corpus_ids: list[Id] | None = Field(
        None,
        max_length=10_000,
        description="Only these: ids of chunks, or of documents (their `source`).",
        examples=[["wiki/why-is-my-consumer-slow.md", "slow-01"]],
    )
    filter: Words | dict[str, Any] | None = Field(
        None,
        description="Only passages whose metadata match, as text or as JSON "
        '(`{"field": "year", "op": ">=", "value": 2020}`, `and`, `or`, `not`).',
        examples=['theme = "slow handlers"', {"field": "kind", "op": "=", "value": "original"}],
    )
    triage_k: Count | None = Field(
        None,
        description="How many candidates to pick from; 100, or `top_k` where that is more.",
        examples=[100],
    )
    must_include: list[Id] = Field(
        [],
        max_length=1000,
        description="Chunks that are picked first, whatever they gain.",
        examples=[["slow-01"]],
    )
    exclude: list[Id] = Field(
        [], max_length=10_000, description="Chunks that are left out.", examples=[["rebalance-02"]]
    )
    max_per_source: Count | None = Field(
        None, description="At most so many passages of one document.", examples=[2]
    )
    min_gain_share: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Stop once a pick gains less than this share of what the first gained.",
        examples=[0.05],
    )
    min_similarity: float | None = Field(
        None,
        ge=-1,
        le=1,
        description="Leave out passages less similar to the question (cosine).",
        examples=[0.2],
    )
    collection: AskedCollection = None

    @field_validator("triage_k")
    @classmethod
    def _room_for_k(cls, triage_k: int | None, before: ValidationInfo) -> int | None:
        top_k = before.data.get("top_k")
        if triage_k is not None and top_k is not None and triage_k < top_k:
            raise ValueError("must be at least top_k: there have to be enough candidates to pick from")
        return triage_k

    @field_validator("exclude")
    @classmethod
    def _not_required(cls, exclude: list[str], before: ValidationInfo) -> list[str]:
        if set(exclude) & set(before.data.get("must_include", ())):
            raise ValueError("names a chunk that must_include names too")
        return exclude


class RetrieveOptions(SearchRequest):
    """What one question and many have in common."""

    return_scores: bool = Field(True, description="Whether results carry `score`.", examples=[True])
    explain: bool = Field(
        False, description="Whether results say why: gains, coverage, who found what, time.", examples=[True]
    )


class RetrieveRequest(RetrieveOptions):
    """One question."""

    query: Query


class BatchRequest(RetrieveOptions):
    """Many questions with the same options."""

    queries: list[str] = Field(
        min_length=1,
        description="The questions; one that is empty or too long is an error in its place.",
        examples=[["Why are our consumers falling behind?", "How do I replay messages?"]],
    )


class Share(Answer):
    """What one member of the retriever said of a passage."""

    rank: int = Field(description="Its place in the member's list, from 1.", examples=[3])
    score: float = Field(description="The member's own score.", examples=[0.61])


class Result(Answer):
    """A passage that was picked."""

    chunk_id: str = Field(description="The passage's id.", examples=["slow-01"])
    text: str = Field(description="The passage.", examples=["Consumers fall behind, as a rule, because …"])
    score: float | None = Field(
        None,
        description="What the passage adds to those before it: a share of what all candidates would cover.",
        examples=[0.41],
    )
    rank: int = Field(description="The order in which it was picked, from 1.", examples=[1])
    metadata: Metadata = Field(
        description="What is known of the passage.",
        examples=[{"source": "runbook/consumers-falling-behind.md", "theme": "slow handlers"}],
    )
    gain: float | None = Field(None, description="The same as `score` (explain).", examples=[0.41])
    coverage: float | None = Field(
        None, description="What is covered after this pick, of 1 (explain).", examples=[0.41]
    )
    similarity: float | None = Field(
        None, description="Cosine to the question, or the pair scorer's word (explain).", examples=[0.72]
    )
    stands_for: list[str] | None = Field(
        None,
        description="Candidates that this pick covers best (explain).",
        examples=[["slow-01", "slow-01b"]],
    )
    shares: dict[str, Share] | None = Field(
        None,
        description="What each member of the retriever said (explain).",
        examples=[{"dense": {"rank": 1, "score": 0.72}, "bm25": {"rank": 2, "score": 9.1}}],
    )
    retriever_score: float | None = Field(
        None, description="The retriever's own score (explain).", examples=[0.93]
    )


class UsedConfig(Answer):
    """What was really used."""

    sigma: float | None = Field(
        description="σ as it was used; null where a method has none.", examples=[0.087]
    )
    top_k: int | None = Field(description="The number of passages asked for.", examples=[5])
    reranker_type: str = Field(description="As asked.", examples=["cosine"])
    method: str = Field(description="Who picked.", examples=["dartboard"])
    sigma_source: str | None = Field(
        description="Where σ comes from: given, calibration, candidates, model.", examples=["candidates"]
    )
    triage_k: int = Field(description="The number of candidates asked for.", examples=[100])
    token_budget: int | None = Field(description="The budget asked for.", examples=[None])
    collection: str = Field(description="The collection that was asked.", examples=["demo"])
    retriever: str = Field(description="Who found the candidates.", examples=["hybrid"])


class FoundRelevance(Answer):
    """Whether anything relevant was found: the best candidate against what the model gives.

    Passages are returned all the same.
    """

    verdict: Literal["relevant", "nothing_relevant", "unknown"] = Field(
        description="`nothing_relevant` where the best candidate is below `threshold`, or there is none; "
        "`unknown` where nobody measured the model.",
        examples=["relevant"],
    )
    message: str = Field(
        description="That nothing relevant was found, in a sentence; empty otherwise.", examples=[""]
    )
    best_similarity: float | None = Field(
        description="The highest cosine of a candidate to the question; null without candidates.",
        examples=[0.72],
    )
    threshold: float | None = Field(
        description="Half-way between the two levels; null where they are not known.", examples=[0.315]
    )
    unrelated: float | None = Field(
        description="Mean cosine that the model gives a question and a passage about something else.",
        examples=[0.02],
    )
    related: float | None = Field(
        description="Mean cosine that it gives a question and a passage that answers it.", examples=[0.61]
    )


class RetrieveResponse(Answer):
    """Passages that together say most about a question, in the order in which they were picked."""

    query: str = Field(description="The question.", examples=["Why are our consumers falling behind?"])
    results: list[Result] = Field(description="The passages.", examples=[[]])
    relevance: FoundRelevance = Field(description="Whether anything relevant was found.", examples=[])
    execution_time_ms: float = Field(description="Milliseconds in the service.", examples=[12.3])
    config: UsedConfig = Field(description="What was used.", examples=[])
    bound: float | None = Field(
        None,
        description="The set covers at least this share of what the best possible set would (explain).",
        examples=[0.93],
    )
    candidates: int | None = Field(
        None, description="How many candidates there were (explain).", examples=[100]
    )
    near_copies: int | None = Field(
        None,
        description="How many of them were removed as near-duplicates of a more relevant one (explain).",
        examples=[62],
    )
    seconds: dict[str, float] | None = Field(
        None, description="Where the time went (explain).", examples=[{"encode": 0.004, "search": 0.002}]
    )


class Failure(Answer):
    """A question of a batch that could not be answered."""

    error: str = Field(description="What was wrong with this question.", examples=["the query is too long"])


class BatchResponse(Answer):
    """One answer for each question, in order."""

    results: list[RetrieveResponse | Failure] = Field(
        description="Answers or errors, in order.", examples=[[]]
    )
    execution_time_ms: float = Field(description="Milliseconds in the service.", examples=[40.1])
