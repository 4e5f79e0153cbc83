"""The toolset gets parameters of a connection, and these the server and the time."""

import ast

from checking import read

program = read()
assert "connection_params" in program.one("google.adk.tools.mcp_tool.mcp_toolset.McpToolset").keywords
connection = program.one("google.adk.tools.mcp_tool.mcp_session_manager.StdioConnectionParams").keywords
assert "server_params" in connection and ast.literal_eval(connection["timeout"]) == 10
