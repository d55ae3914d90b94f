"""Serena: found, spoken to, and kept level with the runs."""
