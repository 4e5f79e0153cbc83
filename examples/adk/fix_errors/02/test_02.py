"""The agent still has a model and an instruction, and a name that the package accepts."""

import ast

from checking import read

agent = read().one("google.adk.agents.llm_agent.LlmAgent")
name = ast.literal_eval(agent.keywords["name"])
assert name.isidentifier() and name != "user", f"{name!r} is refused"
assert ast.literal_eval(agent.keywords["model"]) and ast.literal_eval(agent.keywords["instruction"])
