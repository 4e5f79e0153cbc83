"""An index as tools for language models, by the Model Context Protocol: search, context, select, explain.

``dartboard mcp`` serves them; :func:`~dartboard.integrations.mcp.server.create_server` makes the server for
programs that have their own transport. All tools read and none writes. Needs the extra ``mcp``.
"""
