"""Each team has two agents, and no agent is in two teams."""

import ast

from checking import read

teams = read().all("google.adk.agents.sequential_agent.SequentialAgent")
assert len(teams) == 2
members = [[ast.unparse(one) for one in team.keywords["sub_agents"].elts] for team in teams]
assert all(len(team) == 2 for team in members)
named = [one for team in members for one in team if one.isidentifier()]
assert len(named) == len(set(named)), f"an agent has one parent: {named}"
