-- Browsers that signed in to the dashboard. Only a hash of a session's secret is kept.

CREATE TABLE browser_sessions (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    key_name TEXT NOT NULL,
    scope TEXT NOT NULL,
    client TEXT,
    address TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    ended_at BIGINT,
    ended_by TEXT
);
