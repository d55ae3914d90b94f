"""Backups: taken while the store is in use, and restored into either engine."""
