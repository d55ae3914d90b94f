"""A project's own protocol: its settings and its document."""
