"""Claude Code's transcripts: files, entries, and their copies in the store."""
