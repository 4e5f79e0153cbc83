"""The agent has the tool, and the tool asks first."""

import ast

from checking import read

program = read()
tool = program.one("google.adk.tools.function_tool.FunctionTool")
assert "delete_account" in ast.unparse(tool.node)
assert ast.unparse(tool.keywords["require_confirmation"]) != "False"
assert "tools" in program.one("google.adk.agents.llm_agent.LlmAgent").keywords
