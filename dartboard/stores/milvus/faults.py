"""Milvus's errors in dartboard's words: what went wrong, where, and what to do."""

from typing import Any

from dartboard.errors import CollectionError, StoreError, StoreUnavailableError
from dartboard.stores.milvus.address import TOKEN_VARIABLE, Address

NOT_LOADED = 101
_COLLECTION_MISSING = 100
_UNREACHABLE = ("unavailable", "fail connecting", "deadline", "retry timeout", "retry run out", "connect")
_REFUSED = ("unauthenticated", "auth check failure", "permission_denied", "permissiondenied", "invalid token")


def translate(error: Exception, address: Address) -> StoreError:
    """The error to raise instead of Milvus's own; never with a token in it."""
    code, reason = _code(error), _reason(error, address)
    lowered = reason.lower()
    if any(sign in lowered for sign in _REFUSED):
        return StoreUnavailableError(
            f"Milvus at {address.place} refused access ({reason}): check the user, password or token in the "
            f"URL or in {TOKEN_VARIABLE}"
        )
    if "database" in lowered and ("not found" in lowered or "not exist" in lowered):
        return StoreUnavailableError(
            f"Milvus at {address.place} has no database {address.database!r}: create it there, or leave it "
            "out of the URL"
        )
    if code == _COLLECTION_MISSING:
        return CollectionError(f"the collection is gone from Milvus at {address.place}: {reason}")
    if any(sign in lowered for sign in _UNREACHABLE):
        return StoreUnavailableError(
            f"cannot reach Milvus at {address.place} ({reason}): is the server running, and are host, port "
            "and TLS (milvuss://) right?"
        )
    return StoreError(f"Milvus at {address.place} could not do it: {reason}")


def is_not_loaded(error: Exception) -> bool:
    """Whether a collection has only to be loaded again, as after a restart of the server."""
    return _code(error) == NOT_LOADED or "not loaded" in str(error).lower()


def _code(error: BaseException) -> Any:
    code = getattr(error, "code", None)
    return code() if callable(code) else code


def _reason(error: BaseException, address: Address) -> str:
    if callable(getattr(error.__cause__, "details", None)):  # the call that failed below the client
        error = error.__cause__  # type: ignore[assignment]
    text = getattr(error, "message", "") or str(error)
    if callable(getattr(error, "details", None)):
        text = f"{getattr(_code(error), 'name', _code(error))}: {error.details()}"  # type: ignore[attr-defined]
    line = " ".join(str(text).split())
    for secret in {address.token, address.token.partition(":")[2]} - {""}:
        line = line.replace(secret, "***")
    return line if len(line) <= 400 else f"{line[:400]}…"
