"""Puts Holdfast into the settings of coding agents, and takes it out again."""
