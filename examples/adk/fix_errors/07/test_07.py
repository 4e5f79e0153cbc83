"""Each team has two agents, no agent is in two teams, and the second checker is made from the first."""

import ast

from checking import read

program = read()
teams = program.all("google.adk.agents.sequential_agent.SequentialAgent")
assert len(teams) == 2
members = [[ast.unparse(one) for one in team.keywords["sub_agents"].elts] for team in teams]
assert all(len(team) == 2 for team in members)
named = [one for team in members for one in team if one.isidentifier()]
assert len(named) == len(set(named)), f"an agent has one parent: {named}"
agents = program.all("google.adk.agents.llm_agent.LlmAgent")
assert len(agents) == 3, f"a writer, a translator and a checker are agents, found {len(agents)}"
calls = [node.func for node in ast.walk(program.tree) if isinstance(node, ast.Call)]
clones = [one for one in calls if isinstance(one, ast.Attribute) and one.attr == "clone"]
assert len(clones) == 1, "the second checker has the configuration of the first"
