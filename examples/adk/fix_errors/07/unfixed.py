"""Two teams that end with the same check."""

from google.adk.agents import LlmAgent, SequentialAgent

checker = LlmAgent(name="checker", model="gemini-2.0-flash", instruction="Check the grammar.")
writers = SequentialAgent(name="writers", sub_agents=[LlmAgent(name="writer"), checker])
translators = SequentialAgent(name="translators", sub_agents=[LlmAgent(name="translator"), checker])
