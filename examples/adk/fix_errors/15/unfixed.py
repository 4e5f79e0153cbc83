"""A runner for trying things out."""

from google.adk.agents import InMemoryRunner, LlmAgent

runner = InMemoryRunner(agent=LlmAgent(name="helper", model="gemini-2.0-flash"), app_name="trial")
