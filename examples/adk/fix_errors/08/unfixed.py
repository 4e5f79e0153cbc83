"""A session to begin with."""

from google.adk.sessions import InMemorySessionService

service = InMemorySessionService()
session = service.create_session(app_name="shop", user_id="ada", state={"language": "en"})
print(session.id)
