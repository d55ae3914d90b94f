"""The text that replaces a secret."""

MASK = "[redacted]"
