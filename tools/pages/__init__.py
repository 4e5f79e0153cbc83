"""What the documentation site generates when it is built: its reference, and its formulas."""
