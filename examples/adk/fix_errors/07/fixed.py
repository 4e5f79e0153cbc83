"""Two teams that end with the same check."""

from google.adk.agents import LlmAgent, SequentialAgent

checker = LlmAgent(name="checker", model="gemini-2.0-flash", instruction="Check the grammar.")
second_checker = checker.clone(update={"name": "second_checker"})
writers = SequentialAgent(name="writers", sub_agents=[LlmAgent(name="writer"), checker])
translators = SequentialAgent(name="translators", sub_agents=[LlmAgent(name="translator"), second_checker])
