"""What the agent is told stands in a field that it has."""

import ast

from checking import read

agent = read().one("google.adk.agents.llm_agent.LlmAgent")
assert "rhymes" in ast.literal_eval(agent.keywords["instruction"])
