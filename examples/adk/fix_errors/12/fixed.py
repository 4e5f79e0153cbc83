"""An agent that thinks before it answers."""

from google.adk.agents import LlmAgent
from google.adk.planners import BuiltInPlanner
from google.genai import types

agent = LlmAgent(
    name="thinker",
    model="gemini-2.5-flash",
    planner=BuiltInPlanner(thinking_config=types.ThinkingConfig(thinking_budget=1024)),
)
