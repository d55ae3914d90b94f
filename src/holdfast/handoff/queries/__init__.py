"""SQL of handoff."""
