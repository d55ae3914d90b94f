"""Adds Holdfast to the settings of coding agents, and removes it again."""
