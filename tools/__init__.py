"""Scripts that work on the project, not in it."""
