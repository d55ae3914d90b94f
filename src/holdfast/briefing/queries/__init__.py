"""The briefing's SQL."""
