"""A project's sessions as one file: written on one machine, taken over on another."""
