"""The runner is imported from where it is, and runs the agent."""

from checking import read

runner = read().one("google.adk.runners.InMemoryRunner")
assert {"agent", "app_name"} <= set(runner.keywords)
