"""The SQL of forgetting."""
