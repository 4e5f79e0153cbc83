"""An agent that thinks before it answers."""

from google.adk.agents import LlmAgent
from google.genai import types

agent = LlmAgent(
    name="thinker",
    model="gemini-2.5-flash",
    generate_content_config=types.GenerateContentConfig(
        thinking_config=types.ThinkingConfig(thinking_budget=1024)
    ),
)
