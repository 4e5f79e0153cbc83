"""The OpenAPI document: every operation and body described, small, and made before the first request."""

import json

from dartboard.api.app import create_app
from dartboard.api.settings import ServiceSettings

DOCUMENT = create_app(ServiceSettings()).openapi()
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = {
    f"{method} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}


def test_every_operation_is_named_and_says_how_it_fails():
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)
    for name, operation in OPERATIONS.items():
        assert operation["operationId"].isidentifier()
        assert len(operation["summary"].split()) >= 3 and operation["description"], name
        content = operation["responses"]["default"]["content"]
        assert content == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


def test_bodies_are_described_and_strict():
    for name, operation in OPERATIONS.items():
        if name.startswith(("post", "put")) and "ticket" not in name:
            assert operation["requestBody"]["content"], name
    for name in ("RetrieveRequest", "BatchRequest", "ContextRequest", "SelectRequest", "EvaluateRequest"):
        assert SCHEMAS[name]["additionalProperties"] is False
    offered = SCHEMAS["RetrieveRequest"]["properties"]
    assert {"top_k", "sigma", "reranker_type", "query"} <= set(offered)
    assert all(described.get("description") for described in offered.values())


def test_every_reference_leads_somewhere_and_the_document_is_small():
    text = json.dumps(DOCUMENT)
    assert len(text) < 130_000
    for part in text.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in SCHEMAS
