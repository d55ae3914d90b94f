"""Briefing: an agent that comes back knows what it was doing."""
