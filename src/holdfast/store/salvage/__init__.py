"""Salvage: finds damage and keeps every row that can still be read."""
