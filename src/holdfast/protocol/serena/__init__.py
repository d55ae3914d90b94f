"""Serena: finding it, talking to it, and mirroring runs into its memories."""
