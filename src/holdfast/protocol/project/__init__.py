"""A project's own protocol: its settings, its document, and what of it is trusted."""
