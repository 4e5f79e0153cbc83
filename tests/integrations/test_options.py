"""Components have the options of a search as fields, with the same defaults."""

import os
from dataclasses import fields

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import pytest

from dartboard.integrations import haystack
from dartboard.integrations.langchain import DartboardCompressor, DartboardRetriever
from dartboard.integrations.llama_index import DartboardPostprocessor
from dartboard.integrations.options import RerankFields, SearchFields
from dartboard.search_options import SearchOptions

DEFAULTS = {field.name: field.default for field in fields(SearchOptions)}


@pytest.mark.parametrize("shared", [SearchFields, RerankFields])
def test_fields_are_options_of_a_search(shared):
    found = {name: field.default for name, field in shared.model_fields.items() if name != "metadata_key"}
    assert len(found) > 7 and found.items() <= DEFAULTS.items()


@pytest.mark.parametrize(
    ("component", "shared"),
    [
        (DartboardRetriever, SearchFields),
        (DartboardCompressor, RerankFields),
        (DartboardPostprocessor, RerankFields),
    ],
)
def test_components_have_all_of_them(component, shared):
    assert shared.model_fields.keys() <= component.model_fields.keys()
    assert component.model_config["extra"] == "forbid"


@pytest.mark.parametrize(
    ("component", "shared", "elsewhere"),
    [
        (haystack.DartboardRanker(), RerankFields, {"k"}),
        (haystack.DartboardRetriever("tea.dartboard"), SearchFields, {"k", "where"}),
    ],
)
def test_haystack_components_take_and_save_them(component, shared, elsewhere):
    wanted = shared.model_fields.keys() - {"metadata_key"} - elsewhere
    defaults = {name: shared.model_fields[name].default for name in wanted}
    assert {name: getattr(component, name) for name in wanted} == defaults
    saved = component.to_dict()["init_parameters"]
    assert wanted <= saved.keys() and not any(isinstance(value, tuple) for value in saved.values())
    assert type(component)(**saved | {"max_per_source": 2}).max_per_source == 2


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (haystack.DartboardRanker, {"k": 3}, r"DartboardRanker\(\) takes no 'k': did you mean 'top_k'"),
        (haystack.DartboardRanker, {"where": "a = 1"}, "takes no 'where': there are top_k, model, .*, sigma"),
        (haystack.DartboardRetriever, {"store": "x", "filter": {}}, "did you mean 'filters'"),
        (haystack.DartboardRetriever, {"store": "x", "sigmaa": 1}, "did you mean 'sigma'"),
    ],
)
def test_a_wrong_name_is_answered_with_the_right_one(make, wrong, message):
    with pytest.raises(TypeError, match=message):
        make(**wrong)
