"""Serena: finding it, asking whether it answers, and mirroring runs into its memories."""
