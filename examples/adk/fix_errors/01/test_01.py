"""The plugin is made with five retries and the global scope, by parameters that it has."""

import ast

from checking import read

plugin = read().one("google.adk.plugins.reflect_retry_tool_plugin.ReflectAndRetryToolPlugin")
assert ast.literal_eval(plugin.keywords["max_retries"]) == 5
assert ast.unparse(plugin.keywords["tracking_scope"]).endswith("TrackingScope.GLOBAL")
