"""The app is compacted every three invocations, with some overlap."""

import ast

from checking import read

program = read()
assert "events_compaction_config" in program.one("google.adk.apps.app.App").keywords
config = program.one("google.adk.apps.app.EventsCompactionConfig").keywords
assert ast.literal_eval(config["compaction_interval"]) == 3
assert ast.literal_eval(config["overlap_size"]) >= 0
