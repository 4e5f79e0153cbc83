"""Who asks, what they may do, and how often: two dependencies for endpoints.

``Depends(reader)`` and ``Depends(writer)`` find the key, check its scope and count the request. Without a key
file everybody who can reach the service may write, and the limit is by address; the service binds to
loopback only then.

Requests with a wrong key or none are counted by address as well: after a few, they are answered with 429
without a word about the key. A right key is let in all the same, so nobody can lock others out from a shared
address.
"""

from typing import Annotated

from fastapi import Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer

from dartboard.api.credentials import key_of, sent_secrets
from dartboard.api.errors import Forbidden, TooManyRequests, Unauthorized
from dartboard.api.headers import add_headers
from dartboard.api.keys import Key, Scope
from dartboard.api.rate_limits import Verdict, client_address, usual_burst
from dartboard.api.service import Service

FAILURES = 10
"""Requests with a wrong key or none that an address may send at once …"""
FAILURE_RATE = 1 / 6
"""… and how many more a second."""

_bearer = HTTPBearer(auto_error=False, description="A key made by `dartboard keys create`.")
_header = APIKeyHeader(
    name="X-API-Key", auto_error=False, description="The same key, in a header of its own."
)


async def reader(
    request: Request,
    bearer: Annotated[object, Security(_bearer)] = None,
    header: Annotated[object, Security(_header)] = None,
) -> Key | None:
    """Let in who may read; the key, or None where no keys are used."""
    return _admit(request, "read")


async def writer(
    request: Request,
    bearer: Annotated[object, Security(_bearer)] = None,
    header: Annotated[object, Security(_header)] = None,
) -> Key | None:
    """Let in who may write; the key, or None where no keys are used."""
    return _admit(request, "write")


def _admit(request: Request, scope: Scope) -> Key | None:
    service: Service = request.app.state.service
    key = None if service.keys is None else _key(request, service)
    request.state.key = key
    _count(request, service, key)
    if key is not None and scope not in key.scopes:
        service.metrics.rejected("forbidden")
        raise Forbidden()
    return key


def _key(request: Request, service: Service) -> Key:
    if service.keys is None:  # pragma: no cover - asked only where there are keys
        raise Unauthorized()
    key = key_of(request.scope, service.keys)
    if key is not None:
        return key
    service.metrics.rejected("unauthorized")
    verdict = service.limits.take(f"failed {_address(request)}", rate=FAILURE_RATE, burst=FAILURES)
    if not verdict.allowed:
        raise TooManyRequests("too many wrong keys: wait a little", retry_after=verdict.retry_after)
    if len(sent_secrets(request.scope)) > 1:
        raise Unauthorized("send one key: Authorization: Bearer KEY, or X-API-Key: KEY")
    raise Unauthorized()


def _count(request: Request, service: Service, key: Key | None) -> None:
    settings = service.settings
    rate, burst = settings.rate, settings.burst
    if key is not None and key.rate is not None:
        rate, burst = key.rate, None  # the service's burst belongs to its own rate
    if key is not None and key.burst is not None:
        burst = key.burst
    if not rate:
        return
    client = f"key {key.id}" if key is not None else f"address {_address(request)}"
    verdict: Verdict = service.limits.take(client, rate=rate, burst=burst or usual_burst(rate))
    if verdict.allowed:
        add_headers(request.scope, verdict.headers())
        return
    service.metrics.rejected("rate_limited")
    raise TooManyRequests(
        "too many requests: see Retry-After", retry_after=verdict.retry_after, headers=verdict.headers()
    )


def _address(request: Request) -> str:
    return client_address(request.client.host if request.client else None)
