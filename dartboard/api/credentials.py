"""What a request shows as its key: ``Authorization: Bearer KEY`` or ``X-API-Key: KEY``."""

from starlette.datastructures import Headers
from starlette.types import Scope

from dartboard.api.keys import Key, Keys


def sent_secrets(scope: Scope) -> list[str]:
    """What came as a key, each once."""
    headers = Headers(scope=scope)
    found = headers.getlist("x-api-key")
    for value in headers.getlist("authorization"):
        scheme, _, secret = value.partition(" ")
        if scheme.lower() == "bearer":
            found.append(secret.strip())
    return list(dict.fromkeys(found))


def key_of(scope: Scope, keys: Keys) -> Key | None:
    """The key of a request that shows exactly one, if it is in force."""
    secrets = sent_secrets(scope)
    return keys.find(secrets[0]) if len(secrets) == 1 else None
