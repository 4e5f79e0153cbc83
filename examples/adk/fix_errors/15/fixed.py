"""A runner for trying things out."""

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner

runner = InMemoryRunner(agent=LlmAgent(name="helper", model="gemini-2.0-flash"), app_name="trial")
