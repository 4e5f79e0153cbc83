"""Requests and responses, one file a topic. Requests are strict: what is unknown is refused."""
