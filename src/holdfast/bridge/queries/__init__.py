"""The bridge's SQL."""
