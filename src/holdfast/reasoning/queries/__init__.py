"""The SQL of reasoning sessions."""
