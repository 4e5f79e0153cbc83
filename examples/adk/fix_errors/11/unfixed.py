"""The tools of a local server."""

from google.adk.tools.mcp_tool import McpToolset
from mcp import StdioServerParameters

server = StdioServerParameters(command="npx", args=["-y", "@modelcontextprotocol/server-filesystem"])
toolset = McpToolset(server_params=server, timeout=10)
