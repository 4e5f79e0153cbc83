"""An application that logs everything its agents do."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins import LoggingPlugin
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService

app = App(name="logged", root_agent=LlmAgent(name="helper", model="gemini-2.0-flash"))
runner = Runner(app=app, plugins=[LoggingPlugin()], session_service=InMemorySessionService())
