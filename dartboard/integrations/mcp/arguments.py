"""What the tools take. Descriptions and limits are written for the model that reads the schema."""

import json
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from dartboard.context import DEFAULT_BUDGET, Order
from dartboard.integrations.mcp import limits
from dartboard.selection.questions import MOST_QUESTIONS


def _unquoted(value: Any) -> Any:
    """A list or an object that a client sent as the text of its JSON; anything else as it is."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def _said(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty: ask something")
    return value


Query = Annotated[str, Field(min_length=1, max_length=limits.QUERY_CHARACTERS), AfterValidator(_said)]
Condition = Annotated[str, Field(max_length=limits.FILTER_CHARACTERS)]
Id = Annotated[str, Field(min_length=1, max_length=limits.ID_CHARACTERS)]
Ids = Annotated[list[Id], Field(max_length=limits.EXCLUDED), BeforeValidator(_unquoted)]
Seen = Annotated[list[Id], Field(max_length=limits.SEEN), BeforeValidator(_unquoted)]
Questions = Annotated[list[Query], Field(max_length=MOST_QUESTIONS - 1), BeforeValidator(_unquoted)]
Weight = Annotated[float, Field(gt=0, le=1e6)]
Weights = Annotated[list[Weight], Field(max_length=MOST_QUESTIONS), BeforeValidator(_unquoted)]
Count = Annotated[int, Field(ge=1, le=limits.K)]
FieldName = Annotated[str, Field(min_length=1, max_length=limits.FIELD_CHARACTERS)]
Caps = Annotated[dict[FieldName, Count], Field(max_length=limits.CAPPED_FIELDS), BeforeValidator(_unquoted)]
Budget = Annotated[int, Field(ge=1, le=limits.TOKEN_BUDGET)]
Text = Annotated[str, Field(min_length=1, max_length=limits.TEXT_CHARACTERS)]
Texts = Annotated[list[Text], Field(min_length=1, max_length=limits.TEXTS), BeforeValidator(_unquoted)]
Row = Annotated[list[float], Field(min_length=1, max_length=limits.DIMENSIONS)]
Vector = Annotated[Row, BeforeValidator(_unquoted)]
Vectors = Annotated[list[Row], Field(min_length=1, max_length=limits.VECTORS), BeforeValidator(_unquoted)]

_QUERY = (
    "What to find out, in plain words; a whole question works best. At most "
    f"{limits.QUERY_TOKENS} tokens of the index's model."
)
_K = "How many passages to return at most. Default 5, unless token_budget is given."
_BUDGET = (
    "As many passages as fit into this many tokens together, instead of a number k. With both, both hold."
)
_METHOD = (
    "Who picks from the candidates. 'dartboard' (default): the set that together says most, without "
    "repeating itself. 'top_k': simply the best matches, even if they repeat each other. 'mmr' and "
    "'near_duplicate_filter': for comparison."
)
_FILTER = (
    'Only passages whose metadata match, e.g. source = "guide/install.md", or: kind in ["markdown", "pdf"] '
    "and page <= 3. Operators: = != < <= > >= in exists, and or not, brackets; text in double quotes."
)
_ALSO = (
    "Further questions that are answered together with query. Give them when the question has parts: one "
    'short, whole question for each ("Which plan is cheaper?": "What does plan A cost?", "What does plan B '
    'cost?"). Every passage then says which question it serves.'
)
_SEEN = (
    "Ids of passages that you have already, from earlier results. Give them with every follow-up question: "
    "what they say counts as covered, and only passages that add something to it are returned."
)
_OFFSET = (
    "Skip this many passages: k=5 with offset=5 returns the next five for the same question. All other "
    "arguments must be those of the first call; not with token_budget."
)
_PREFER = (
    "A metadata field such as version or modified. Of near-duplicates, the one with the largest value is "
    "returned, and copies names the others and in which numbers or dates they differ."
)


class Arguments(BaseModel):
    """No argument that is not described, and no NaN."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class QuestionArguments(Arguments):
    """A question to the index."""

    query: Query = Field(description=_QUERY)
    k: Count | None = Field(None, description=_K)
    token_budget: Budget | None = Field(None, description=_BUDGET)
    method: str | None = Field(None, description=_METHOD)
    filter: Condition | None = Field(None, description=_FILTER)
    also: Questions = Field([], description=_ALSO)
    weights: Weights | None = Field(
        None, description="How much query and each question in also count, in this order; default: equally."
    )
    seen: Seen = Field([], description=_SEEN)
    prefer: FieldName | None = Field(None, description=_PREFER)
    max_per_source: Count | None = Field(None, description="At most this many passages of one document.")
    max_per: Caps | None = Field(
        None,
        description='At most this many passages that agree in a metadata field, e.g. {"author": 2}.',
    )
    exclude: Ids = Field(
        [],
        description="Ids of passages to leave out, whatever they say. For passages that you have, use seen.",
    )


class SearchArguments(QuestionArguments):
    """A question whose passages come one by one."""

    offset: int = Field(0, ge=0, le=limits.OFFSET, description=_OFFSET)


class ContextArguments(QuestionArguments):
    """A question whose passages come as one text."""

    k: Count | None = Field(
        None, description="How many chunks to pick at most; as many as fit where it is not given."
    )
    token_budget: Budget = Field(
        DEFAULT_BUDGET, description="How many tokens the whole text may have, with sources and headings."
    )
    order: Order = Field(
        "gain",
        description="gain: what adds most comes first. source: passages of one document together, in its "
        "order. ends: the best first and last.",
    )
    expand: bool = Field(
        True, description="Whether chunks before and after a pick may be added where they add most per token."
    )


class SelectArguments(Arguments):
    """Candidates that the caller brings along."""

    query: Query | None = Field(
        None, description="What the selection should be about. Give this or query_vector."
    )
    query_vector: Vector | None = Field(
        None, description="The question as a vector, as long as the candidates' vectors."
    )
    texts: Texts | None = Field(
        None,
        description="The candidates as texts, embedded here by the index's model and not kept. At most "
        f"{limits.TEXTS}, together {limits.ALL_CHARACTERS} characters.",
    )
    vectors: Vectors | None = Field(
        None,
        description="The candidates as vectors of one length. With texts too, the vector of each text, "
        "which then is not embedded again.",
    )
    k: Count | None = Field(None, description="How many to pick. Default 5, unless token_budget is given.")
    token_budget: Budget | None = Field(
        None, description="As many as fit into this many tokens together; needs texts, whose tokens count."
    )
    method: str | None = Field(None, description=_METHOD)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.query is None) == (self.query_vector is None):
            raise ValueError("give query or query_vector: one of the two")
        if self.texts is None and self.vectors is None:
            raise ValueError("give texts, vectors, or both: what to select from")
        if self.texts is not None and self.vectors is not None and len(self.texts) != len(self.vectors):
            raise ValueError(f"{len(self.texts)} texts with {len(self.vectors)} vectors: one each")
        if self.vectors and len({len(vector) for vector in self.vectors}) > 1:
            raise ValueError("vectors must be of one length")
        if self.texts is None and self.token_budget is not None:
            raise ValueError("token_budget needs texts, whose tokens it counts: use k")
        if sum(map(len, self.texts or ())) > limits.ALL_CHARACTERS:
            raise ValueError(f"texts are limited to {limits.ALL_CHARACTERS} characters together: bring fewer")
        return self


class ExplainArguments(Arguments):
    """A passage, and the search that it should be explained for."""

    query: Query = Field(description="The question that was searched with, unchanged.")
    id: Id = Field(description="The id of the passage to explain, as search returned it.")
    k: Count | None = Field(
        None, description="The same k as in the search. Default 5, unless token_budget is given."
    )
    token_budget: Budget | None = Field(None, description="The same token_budget as in the search.")
    filter: Condition | None = Field(None, description="The same filter as in the search.")


def complaint(error: ValidationError, known: list[str]) -> str:
    """What is wrong with the arguments, in words for whoever calls again."""
    said: dict[str, None] = {}
    for one in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(str(part) for part in one["loc"])
        message = str(one["msg"]).removeprefix("Value error, ").replace("Input should", "should")
        if one["type"] == "extra_forbidden":
            message = f"there is no such argument: use {', '.join(known)}"
        elif one["type"] == "missing":
            message = "is required"
        said[f"{where}: {message}" if where else message] = None
    return "; ".join(list(said)[:5])


def schema_of(model: type[Arguments]) -> dict[str, Any]:
    """The JSON schema as models read it best: no titles, and optional values without a branch for null."""
    schema = model.model_json_schema()
    found: dict[str, Any] = _tidied(schema)
    found.pop("description", None)
    return found


def _tidied(node: Any, *, names: bool = False) -> Any:
    """``names`` is for a mapping whose keys are the arguments' own names."""
    if isinstance(node, list):
        return [_tidied(inner) for inner in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: _tidied(inner, names=key == "properties")
        for key, inner in node.items()
        if names or (key != "title" and not (key == "default" and inner is None))
    }
    branches = kept.get("anyOf", [])
    real = [branch for branch in branches if branch != {"type": "null"}]
    if not names and len(real) == 1 and len(real) < len(branches):
        kept.pop("anyOf")
        kept = {**real[0], **kept}
    return kept
