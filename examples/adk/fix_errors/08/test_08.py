"""The session is made, with its state, and waited for."""

from checking import read

program = read()
assert program.one("google.adk.sessions.in_memory_session_service.InMemorySessionService")
made = program.awaited("create_session")
assert len(made) == 1
assert {"app_name", "user_id", "state"} <= {keyword.arg for keyword in made[0].keywords}
