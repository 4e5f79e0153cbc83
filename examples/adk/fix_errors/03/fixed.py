"""An agent that answers in rhymes."""

from google.adk.agents import LlmAgent

poet = LlmAgent(name="poet", model="gemini-2.0-flash", instruction="Answer in rhymes.")
