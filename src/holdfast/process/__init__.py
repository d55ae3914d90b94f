"""Processes: running them under guard and within limits, inspecting them, and one daemon per data directory."""
