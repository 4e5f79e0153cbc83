"""Every option of a search at every door: a new one is missed nowhere, or named here with the reason."""

from dataclasses import fields
from inspect import signature
from typing import get_type_hints

import pytest

from dartboard.api.endpoints.explore import ExploreRequest
from dartboard.api.endpoints.retrieve import ContextRequest
from dartboard.api.schemas import SearchRequest
from dartboard.cli.common_options import SearchFlags
from dartboard.explain.exploration import explore
from dartboard.search_options import SearchKeywords, SearchOptions

OPTIONS = {field.name for field in fields(SearchOptions)}

INTERNAL = {"sigma_min": "a bound of DartboardConfig, checked when the options are made"}
OVER_HTTP = {**INTERNAL, "tokenizer": "a client would name files on the server"}
DOORS = {
    "POST /retrieve": (set(SearchRequest.model_fields), OVER_HTTP),
    "POST /context": (
        set(ContextRequest.model_fields),
        {**OVER_HTTP, "offset": "a context has no pages"},
    ),
    "POST /explore": (set(ExploreRequest.model_fields), {**OVER_HTTP, "method": "it compares three"}),
    "explore()": (set(get_type_hints(SearchKeywords)), {}),
    "dartboard search": ({option.name for option in SearchFlags.parameters()}, INTERNAL),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_option_is_at_every_door(door):
    there, exceptions = DOORS[door]
    assert OPTIONS - there == set(exceptions), "add the option to the door, or say here why it has none"


def test_explore_takes_options_as_a_search_does():
    parameters = list(signature(explore).parameters)
    assert parameters == ["engine", "query", "options", "mmr_relevance", "layout", "sweep", "changes"]
