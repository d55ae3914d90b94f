"""A project's own protocol: its settings, its document, and what of it is trusted."""

DOCUMENT = "document"
"""The protocol that a project's own document describes."""
