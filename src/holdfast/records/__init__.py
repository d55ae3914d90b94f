"""Records: verification and backups of the stored data, and notices of losses."""
