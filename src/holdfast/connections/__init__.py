"""Connections: who is calling, across reconnects."""
