"""The loop has both agents and ends after three rounds."""

import ast

from checking import read

loop = read().one("google.adk.agents.loop_agent.LoopAgent")
assert ast.literal_eval(loop.keywords["max_iterations"]) == 3
assert len(loop.keywords["sub_agents"].elts) == 2
