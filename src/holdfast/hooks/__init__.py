"""Hooks: one event of an agent goes to every capability, and their answers become one."""
