"""Odd requests of all kinds, made from the OpenAPI document: no server error, no undocumented answer.

``DARTBOARD_DEEP_CASES`` is how many an operation gets; ``make test-deep`` sets it to 1,000.
"""

import os

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks

from dartboard.api.app import create_app
from dartboard.api.settings import ServiceSettings
from tests.api.small_app import serving
from tests.llm.chat_server import ModelServer

CASES = int(os.environ.get("DARTBOARD_DEEP_CASES", "10"))
SMALL = {"k": 10, "triage_k": 12, "batch": 4, "vectors": 50, "jobs": 100, "timeout": 120.0}
"""Pools that pair scorers read through in no time."""
CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
)


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with ModelServer() as model:
        chosen = ServiceSettings(
            store=str(folder / "index.dartboard"),
            home=folder / "home",
            answer_model=f"openai:m@{model.url}",
            **SMALL,
        )
        with serving(create_app(chosen)) as port:
            yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def session():
    """One connection for all requests, and no look for proxies before each."""
    with requests.Session() as session:
        session.trust_env = False
        yield session


def asking(operation_id: str):
    """A test of one operation, under a name of its own: several processes tell tests apart by their names."""

    @schema.include(operation_id=operation_id).parametrize()
    @settings(
        max_examples=CASES,
        deadline=None,
        derandomize=CASES < 100,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    def asked(case, address, session):
        case.call_and_validate(base_url=address, session=session, checks=CHECKS, timeout=60)

    return asked


document = create_app(ServiceSettings(**SMALL)).openapi()
schema = schemathesis.openapi.from_dict(document)
OPERATIONS = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
globals().update({f"test_{operation_id}": asking(operation_id) for operation_id in OPERATIONS})
