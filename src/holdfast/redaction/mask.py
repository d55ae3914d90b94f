"""What stands in a secret's place."""

MASK = "[redacted]"
