"""The options of a search as fields of a framework's component, checked when they are set.

LangChain's and LlamaIndex's components, which are pydantic models, inherit the fields below; Haystack's take
the same ones as keywords (:func:`set_options`). Names, types and defaults are those of
:class:`~dartboard.search_options.SearchOptions`: a new option of a search is one more field here.
"""

from collections.abc import Mapping
from dataclasses import fields
from inspect import Parameter, signature
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, field_serializer, model_validator

from dartboard.config import RerankerType
from dartboard.errors import ConfigError
from dartboard.integrations.pick_metadata import KEY
from dartboard.search_options import TRIAGE, SearchOptions
from dartboard.wrong_names import check_names

_NAMED_ELSEWHERE = {"top_n": "k", "top_k": "k"}
_NAMES = tuple(field.name for field in fields(SearchOptions))


class SelectionFields(BaseModel):
    """How much to select, and how."""

    k: int | None = None
    """How many to pick; 5 where there is no ``token_budget`` either."""
    token_budget: int | None = None
    """What the picks may cost together, in tokens of the embedding model or of ``tokenizer``."""
    tokenizer: Any = None
    """Whose tokens the budget counts: a name that tiktoken knows, a ``tokenizer.json``, or a function."""
    offset: int = 0
    """Leave out so many picks: those of earlier pages."""
    also: tuple[str, ...] = ()
    """Further questions that are answered together with the query."""
    weights: tuple[float, ...] | None = None
    """How much the query and each of ``also`` count; equal by default."""
    method: Any = "dartboard"
    """How to choose: a name, such as ``mmr``, or a selection method."""
    sigma: float | Literal["auto"] = "auto"
    """How near a pick has to be to stand for a passage; ``auto`` finds it from the candidates."""
    max_per_source: int | None = None
    """The most picks that one source may have."""
    source_field: str = "source"
    """The metadata field that ``max_per_source`` counts."""
    max_per: dict[str, int] | None = None
    """The most picks that may agree in a metadata field: ``{"author": 2}``."""
    prefer: str | None = None
    """A metadata field: of near-duplicates, the one with the largest value is picked."""
    min_gain_share: float = 0.0
    """Stop once a pick would add less than this share of what the first one added."""
    min_similarity: float | None = None
    """Leave out candidates whose cosine to the question is lower."""
    metadata_key: str = KEY
    """Where in the metadata the note on each pick is put."""

    @field_serializer("also", "weights")
    def _listed(self, value: tuple[Any, ...] | None) -> list[Any] | None:
        """As JSON has them: what was saved and read again is equal to what was saved."""
        return None if value is None else list(value)

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        options_of(self)
        return self


class SearchFields(SelectionFields):
    """What a retriever over an index can be asked for."""

    where: Any = None
    """A filter on metadata, as text or made by ``parse_filter``."""
    triage_k: int = TRIAGE
    """How many candidates are found before some are chosen."""
    reranker: RerankerType = "cosine"
    """By what the question's side is scored: ``cosine``, ``crossencoder`` or ``hybrid``."""
    must_include: tuple[str, ...] = ()
    """Ids of chunks that have to be among the picks."""
    exclude: tuple[str, ...] = ()
    """Ids of chunks that must not be."""
    seen: tuple[str, ...] = ()
    """Ids of chunks that the reader has already: only what adds to them is picked."""


class RerankFields(SelectionFields):
    """What a component that selects from given documents can be asked for."""

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, settings: Any) -> Any:
        """An error for a setting that other rerankers call by another name, with the name it has here."""
        for theirs, ours in _NAMED_ELSEWHERE.items():
            if isinstance(settings, dict) and theirs in settings:
                raise ConfigError(
                    f"{theirs} is called {ours} here: {cls.__name__}({ours}={settings[theirs]!r})"
                )
        return settings


def options_of(owner: Any, **changes: Any) -> SearchOptions:
    """The options that a component has as attributes; those in ``changes`` are taken from there."""
    names = [name for name in _NAMES if hasattr(owner, name)]
    if unknown := sorted(set(changes) - {"k", "where", *names}):
        raise ConfigError(f"unknown option {unknown[0]!r}: there are {', '.join(names)}")
    return SearchOptions(**{name: getattr(owner, name) for name in names} | changes)


def set_options(component: Any, kind: type[SelectionFields], given: Mapping[str, Any], *without: str) -> None:
    """Give a component that is no pydantic model the options of ``kind`` as attributes.

    Args:
        component: what gets them.
        kind: whose fields and defaults they are.
        given: those that differ from the defaults.
        without: fields that the component has under other names.

    Raises:
        TypeError: an option does not exist; the message has the name that was probably meant.
    """
    names = [name for name in kind.model_fields if name in _NAMES and name not in without]
    check_names(given, [*_parameters(component), *names], type(component).__name__)
    for name in names:
        setattr(component, name, given.get(name, kind.model_fields[name].default))


def settings_of(component: Any, *without: str) -> dict[str, Any]:
    """The parameters of a component's ``__init__`` and its options, all of which are its attributes."""
    options = [name for name in _NAMES if hasattr(component, name)]
    found = {
        name: getattr(component, name) for name in (*_parameters(component), *options) if name not in without
    }
    for name, value in found.items():
        if isinstance(value, tuple):
            found[name] = list(value)
        elif isinstance(value, np.ndarray):  # vectors that were seen
            found[name] = value.tolist()
    return found


def _parameters(component: Any) -> list[str]:
    """The parameters of ``__init__`` that have names, and of those of its base classes."""
    makers = [vars(kind)["__init__"] for kind in type(component).__mro__[:-1] if "__init__" in vars(kind)]
    own = [each for maker in makers for each in list(signature(maker).parameters.values())[1:]]
    named = [each.name for each in own if each.kind not in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)]
    return list(dict.fromkeys(named))
