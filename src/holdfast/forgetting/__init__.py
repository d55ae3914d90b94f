"""Forgetting a session or a project: deletes all of its rows, and every copy of them that Holdfast made on its own."""
