"""The SQL of connections."""
