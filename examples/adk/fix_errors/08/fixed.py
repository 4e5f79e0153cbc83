"""A session to begin with."""

import asyncio

from google.adk.sessions import InMemorySessionService


async def main() -> None:
    """Make the session and show its id."""
    service = InMemorySessionService()
    session = await service.create_session(app_name="shop", user_id="ada", state={"language": "en"})
    print(session.id)


asyncio.run(main())
