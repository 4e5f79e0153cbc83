"""The runner has an app, or an agent and the name of its application; never a mix."""

from checking import read

program = read()
runner = program.one("google.adk.runners.Runner")
given = set(runner.keywords)
assert ("app" in given) != ({"app_name", "agent"} <= given), "either app, or app_name and agent"
assert "app" not in given or not given & {"app_name", "agent", "plugins"}
assert "session_service" in given and program.one("google.adk.agents.llm_agent.LlmAgent")
