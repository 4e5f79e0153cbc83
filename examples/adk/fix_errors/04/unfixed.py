"""A runner over sessions in memory."""

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

agent = LlmAgent(name="helper", model="gemini-2.0-flash")
runner = Runner(agent=agent, session_service=InMemorySessionService())
