"""Reasoning: thought sessions that are found again by project root."""
