"""At most twenty calls of the model in one run."""

from google.adk.agents import RunConfig

config = RunConfig(max_llm_calls=20)
