"""Who asks, what they may do, and how often: two dependencies for endpoints.

``READ`` and ``WRITE`` find the key, check its scope and count the request. Without a key file everybody who
can reach the service may write; the service binds to loopback only then.

Requests with a wrong key or none are counted by address: after a few, they are answered with 429 without a
word about the key. A right key is let in all the same, so nobody can lock others out from a shared address.
"""

import math
from typing import Annotated, Literal

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.datastructures import Headers
from starlette.types import Scope

from dartboard.api.errors import Forbidden, ReadOnly, TooManyRequests, Unauthorized
from dartboard.api.keys import Key, Keys
from dartboard.api.rate_limit import client_address
from dartboard.api.service import Service

FAILURES = 10
"""Requests with a wrong key or none that an address may send at once …"""
FAILURE_RATE = 1 / 6
"""… and how many more a second."""

# Only for the OpenAPI document: FastAPI's own checks answer in another shape and take two keys for one.
_BEARER = Security(HTTPBearer(auto_error=False, description="A key made by `dartboard keys create`."))
_HEADER = Security(
    APIKeyHeader(name="X-API-Key", auto_error=False, description="The same key, in a header of its own.")
)


async def reader(
    request: Request, bearer: Annotated[object, _BEARER] = None, header: Annotated[object, _HEADER] = None
) -> Key | None:
    """Let in who may read; the key, or None where no keys are used."""
    return _admit(request, "read")


async def writer(
    request: Request, bearer: Annotated[object, _BEARER] = None, header: Annotated[object, _HEADER] = None
) -> Key | None:
    """Let in who may write; the key, or None where no keys are used."""
    return _admit(request, "write")


async def index_writer(request: Request, key: Annotated[Key | None, Depends(writer)]) -> Key | None:
    """The same for a change of the index, which several processes only read."""
    if request.app.state.service.settings.processes > 1:
        raise ReadOnly()
    return key


READ = [Depends(reader)]
"""The dependencies of an operation that reads."""
WRITE = [Depends(writer)]
"""The dependencies of an operation that changes something beside the index."""
WRITE_INDEX = [Depends(index_writer)]
"""The dependencies of an operation that changes the index."""
ReaderKey = Annotated[Key | None, Depends(reader)]


def key_of(scope: Scope, keys: Keys) -> Key | None:
    """The key of a request that shows exactly one, if it is in force."""
    secrets = _secrets(scope)
    return keys.find(secrets[0]) if len(secrets) == 1 else None


def _secrets(scope: Scope) -> list[str]:
    """What came as a key, each once: ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``."""
    headers = Headers(scope=scope)
    found = headers.getlist("x-api-key")
    for value in headers.getlist("authorization"):
        scheme, _, secret = value.partition(" ")
        if scheme.lower() == "bearer":
            found.append(secret.strip())
    return list(dict.fromkeys(found))


def _admit(request: Request, scope: Literal["read", "write"]) -> Key | None:
    service: Service = request.app.state.service
    address = client_address(request.client.host if request.client else None)
    key = None if service.keys is None else _key(request, service, service.keys, address)
    request.state.key = key
    rate = service.settings.rate if key is None or key.rate is None else key.rate
    if rate:
        wait = _taken(service, f"key {key.id}" if key is not None else f"address {address}", rate)
        if wait:
            service.metrics.rejected("rate_limited")
            raise TooManyRequests("too many requests: see Retry-After", retry_after=wait)
    if key is not None and scope not in key.scopes:
        service.metrics.rejected("forbidden")
        raise Forbidden()
    return key


def _key(request: Request, service: Service, keys: Keys, address: str) -> Key:
    key = key_of(request.scope, keys)
    if key is not None:
        return key
    service.metrics.rejected("unauthorized")
    wait = _taken(service, f"failed {address}", FAILURE_RATE, FAILURES)
    if wait:
        raise TooManyRequests("too many wrong keys: wait a little", retry_after=wait)
    if len(_secrets(request.scope)) > 1:
        raise Unauthorized("send one key: Authorization: Bearer KEY, or X-API-Key: KEY")
    raise Unauthorized()


def _taken(service: Service, client: str, rate: float, burst: int = 1) -> float:
    """Of several processes, each counts for itself and allows its share."""
    share = service.settings.processes
    return service.limits.take(client, rate / share, math.ceil(burst / share))
