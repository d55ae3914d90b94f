-- The keys that sign reconnect tokens: all machines share them. On one machine they are a file beside the database, so
-- that no backup carries them; for the same reason this table has no counterpart in SQLite.

CREATE TABLE signing_keys (
    kid TEXT NOT NULL PRIMARY KEY,
    secret TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    retired_at BIGINT
);
