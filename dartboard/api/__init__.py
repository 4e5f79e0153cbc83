"""The service: one engine behind HTTP. :func:`create_app` makes it, ``dartboard serve`` runs it.

FastAPI is imported only when an application is made.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dartboard.errors import MissingExtraError

if TYPE_CHECKING:
    from dartboard.api.app import create_app
    from dartboard.api.settings import ServiceSettings

__all__ = ["ServiceSettings", "create_app"]


def __getattr__(name: str) -> Any:
    if name == "create_app":
        if find_spec("fastapi") is None:
            raise MissingExtraError("fastapi", "serve", "The service")
        from dartboard.api.app import create_app

        return create_app
    if name == "ServiceSettings":
        from dartboard.api.settings import ServiceSettings

        return ServiceSettings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
