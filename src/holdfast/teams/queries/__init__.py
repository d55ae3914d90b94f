"""The SQL of teams."""
