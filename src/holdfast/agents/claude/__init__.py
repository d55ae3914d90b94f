"""Claude Code: its program, settings, hooks and transcripts."""
