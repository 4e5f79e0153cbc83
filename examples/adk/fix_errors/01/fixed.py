"""Retry failing tools, counting failures over all users."""

from google.adk.plugins.reflect_retry_tool_plugin import ReflectAndRetryToolPlugin, TrackingScope

plugin = ReflectAndRetryToolPlugin(max_retries=5, tracking_scope=TrackingScope.GLOBAL)
