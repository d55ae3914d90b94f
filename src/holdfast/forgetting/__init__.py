"""Forgetting a session or a project: every row of it, and every copy of those rows that Holdfast made by itself."""
