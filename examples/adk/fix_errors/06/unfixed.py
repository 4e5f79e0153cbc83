"""An application whose sessions are compacted every three invocations."""

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.apps.app import EventsCompactionConfig

app = App(
    name="compacted",
    root_agent=LlmAgent(name="helper", model="gemini-2.0-flash"),
    events_compaction_config=EventsCompactionConfig(compaction_interval=3),
)
