"""Thinking is the planner's, and not part of what is generated."""

import ast

from checking import read

program = read()
agent = program.one("google.adk.agents.llm_agent.LlmAgent").keywords
assert "planner" in agent
assert "thinking_config" not in ast.unparse(agent.get("generate_content_config", ast.Constant(None)))
planner = program.one("google.adk.planners.built_in_planner.BuiltInPlanner")
assert "1024" in ast.unparse(planner.keywords["thinking_config"])
