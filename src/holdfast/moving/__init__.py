"""Moving: after a project's directory was moved, moves its stored data to the new root."""
