"""The run is limited to twenty calls."""

import ast

from checking import read

config = read().one("google.adk.agents.run_config.RunConfig")
assert ast.literal_eval(config.keywords["max_llm_calls"]) == 20
