"""What the server can verify, and how."""
