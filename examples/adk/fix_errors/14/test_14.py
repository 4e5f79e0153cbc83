"""The event says who wrote it and what changes."""

import ast

from checking import read

program = read()
event = program.one("google.adk.events.event.Event").keywords
assert ast.literal_eval(event["author"]) and "actions" in event
actions = program.one("google.adk.events.event_actions.EventActions").keywords
assert ast.literal_eval(actions["state_delta"]) == {"language": "fr"}
