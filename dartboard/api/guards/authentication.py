"""Who asks, what they may do, and how often: two dependencies for endpoints.

``Depends(reader)`` and ``Depends(writer)`` find the key, check its scope and count the request. Without a key
file everybody who can reach the service may write, and the limit is by address; the service binds to
loopback only then.

Requests with a wrong key or none are counted by address as well: after a few, they are answered with 429
without a word about the key. A right key is let in all the same, so nobody can lock others out from a shared
address.
"""

import math
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from starlette.datastructures import Headers
from starlette.types import Scope

from dartboard.api.errors import Forbidden, ReadOnly, TooManyRequests, Unauthorized
from dartboard.api.guards.rate_limit import Verdict, client_address, usual_burst
from dartboard.api.guards.security_headers import add_headers
from dartboard.api.keys import Key, Keys
from dartboard.api.keys import Scope as KeyScope
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


READ = [Depends(reader)]
"""The dependencies of an operation that reads."""
WRITE = [Depends(writer)]
"""The dependencies of an operation that changes something."""


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


def _admit(request: Request, scope: KeyScope) -> Key | None:
    service: Service = request.app.state.service
    address = client_address(request.client.host if request.client else None)
    key = None if service.keys is None else _key(request, service, service.keys, address)
    request.state.key = key
    _count(request, service, key, address)
    if key is not None and scope not in key.scopes:
        service.metrics.rejected("forbidden")
        raise Forbidden()
    if scope == "write" and service.settings.processes > 1:
        raise ReadOnly()
    return key


def _key(request: Request, service: Service, keys: Keys, address: str) -> Key:
    key = key_of(request.scope, keys)
    if key is not None:
        return key
    service.metrics.rejected("unauthorized")
    verdict = _taken(service, f"failed {address}", FAILURE_RATE, FAILURES)
    if not verdict.allowed:
        raise TooManyRequests("too many wrong keys: wait a little", retry_after=verdict.retry_after)
    if len(_secrets(request.scope)) > 1:
        raise Unauthorized("send one key: Authorization: Bearer KEY, or X-API-Key: KEY")
    raise Unauthorized()


def _taken(service: Service, client: str, rate: float, burst: int) -> Verdict:
    """Of several processes, each counts for itself and allows its share."""
    share = service.settings.processes
    return service.limits.take(client, rate=rate / share, burst=math.ceil(burst / share))


def _count(request: Request, service: Service, key: Key | None, address: str) -> None:
    rate, burst = service.settings.rate, service.settings.burst
    if key is not None and key.rate is not None:
        rate, burst = key.rate, None  # the service's burst belongs to its own rate
    if key is not None and key.burst is not None:
        burst = key.burst
    if not rate:
        return
    client = f"key {key.id}" if key is not None else f"address {address}"
    verdict = _taken(service, client, rate, burst or usual_burst(rate))
    if verdict.allowed:
        add_headers(request.scope, verdict.headers())
        return
    service.metrics.rejected("rate_limited")
    raise TooManyRequests(
        "too many requests: see Retry-After", retry_after=verdict.retry_after, headers=verdict.headers()
    )
