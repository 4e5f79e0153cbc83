"""Components have the options of a search as fields, with the same defaults."""

from dataclasses import fields

import pytest

from dartboard.integrations.langchain import DartboardCompressor, DartboardRetriever
from dartboard.integrations.llama_index import DartboardPostprocessor
from dartboard.integrations.pydantic_options import RerankFields, SearchFields
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
