"""A tool that asks before it deletes."""

from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool


def delete_account(account: str) -> dict:
    """Delete an account."""
    return {"deleted": account}


agent = LlmAgent(
    name="clerk",
    model="gemini-2.0-flash",
    tools=[FunctionTool(delete_account, require_confirmation=True)],
)
