"""A project's own protocol: its settings, its document, and what trust covers."""

DOCUMENT = "document"
"""The protocol that a project's own document describes."""
