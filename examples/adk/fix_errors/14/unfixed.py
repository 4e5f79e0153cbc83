"""An event that sets a value in the session's state."""

from google.adk.events import Event, EventActions

event = Event(invocation_id="set-language", actions=EventActions(state={"language": "fr"}))
