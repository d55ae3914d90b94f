"""Evidence from an agent's hooks, and the answers they get."""
