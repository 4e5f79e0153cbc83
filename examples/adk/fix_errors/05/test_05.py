"""The plugin belongs to the app, and the runner gets the app without plugins of its own."""

import ast

from checking import read

program = read()
app, runner = program.one("google.adk.apps.app.App"), program.one("google.adk.runners.Runner")
assert "app" in runner.keywords and "plugins" not in runner.keywords
assert program.one("google.adk.plugins.logging_plugin.LoggingPlugin")
assert isinstance(app.keywords["plugins"], ast.List) and len(app.keywords["plugins"].elts) == 1
