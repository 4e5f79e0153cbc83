"""The OpenAPI document: everything named, described and shown by an example; errors in their one shape."""

import pytest
from jsonschema import Draft202012Validator

from dartboard.api.app import create_app
from dartboard.api.settings import ServiceSettings

DOCUMENT = create_app(ServiceSettings(k=7, batch=9)).openapi()
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = {
    f"{method} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}
FIELDS = {
    f"{name}.{field}": described
    for name, schema in SCHEMAS.items()
    for field, described in schema.get("properties", {}).items()
}


def test_every_field_has_a_description_and_an_example():
    for name, described in FIELDS.items():
        model = SCHEMAS.get(described.get("$ref", "").rpartition("/")[2], {})
        assert described.get("description") or model.get("description"), name
        shown_by_its_own_fields = "$ref" in described
        assert "example" in described or described.get("examples") or shown_by_its_own_fields, name


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_named_and_says_how_it_fails(name):
    operation = OPERATIONS[name]
    assert operation["operationId"].isidentifier()
    assert operation["description"]
    for status in ("401", "403", "404", "413", "415", "422", "429", "503", "504"):
        content = operation["responses"][status]["content"]
        assert content == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for parameter in operation.get("parameters", ()):
        assert parameter.get("description"), name
        shown = {**parameter, **parameter["schema"]}
        assert "example" in shown or shown.get("examples"), (name, parameter["name"])


def test_names_are_used_once():
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)


def test_examples_are_examples():
    definitions = _local(SCHEMAS)
    for name, described in FIELDS.items():
        checker = Draft202012Validator({**_local(described), "$defs": definitions})
        for example in described.get("examples", ()):
            assert checker.is_valid(example), (name, example)


def _local(value):
    if isinstance(value, dict):
        return {
            key: one.replace("#/components/schemas/", "#/$defs/")
            if key == "$ref" and isinstance(one, str)
            else _local(one)
            for key, one in value.items()
        }
    return [_local(one) for one in value] if isinstance(value, list) else value


def test_limits_are_those_of_this_service():
    top_k = SCHEMAS["RetrieveRequest"]["properties"]["top_k"]["anyOf"][0]
    assert top_k == {"type": "integer", "minimum": 1, "maximum": 7}
    assert SCHEMAS["BatchRequest"]["properties"]["queries"]["maxItems"] == 9


def test_requests_take_no_unknown_fields():
    for name in (
        "RetrieveRequest",
        "BatchRequest",
        "ContextRequest",
        "SelectRequest",
        "EvaluateRequest",
        "CreateRequest",
        "DeleteRequest",
    ):
        assert SCHEMAS[name]["additionalProperties"] is False
