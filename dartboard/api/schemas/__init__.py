"""What requests and responses look like, one file a topic. Requests are strict: what is unknown is refused."""
