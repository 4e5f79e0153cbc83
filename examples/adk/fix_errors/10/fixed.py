"""Write and review, three times at most."""

from google.adk.agents import LlmAgent, LoopAgent

writer = LlmAgent(name="writer", model="gemini-2.0-flash", output_key="draft")
reviewer = LlmAgent(name="reviewer", model="gemini-2.0-flash", instruction="Review {draft}.")
loop = LoopAgent(name="refine", sub_agents=[writer, reviewer], max_iterations=3)
