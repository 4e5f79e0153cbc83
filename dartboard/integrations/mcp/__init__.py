"""An index as tools for language models, by the Model Context Protocol: search, context, explain, documents.

``dartboard mcp`` serves them; :func:`create_server` makes the server for programs that have their own
transport. All tools read and none writes. Needs the extra ``mcp``.
"""

from dartboard.errors import MissingExtraError

try:
    import mcp  # noqa: F401
except ImportError as missing:
    raise MissingExtraError("the package mcp", "mcp", "dartboard mcp") from missing

from dartboard.integrations.mcp.open_index import OpenIndex
from dartboard.integrations.mcp.server import create_server, http_app, serve_stdio

__all__ = ["OpenIndex", "create_server", "http_app", "serve_stdio"]
