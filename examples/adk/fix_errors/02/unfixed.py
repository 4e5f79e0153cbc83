"""An agent that tells the weather."""

from google.adk.agents import Agent

root_agent = Agent(
    name="weather-bot",
    model="gemini-2.0-flash",
    instruction="Tell the weather of the city that the user names.",
)
