-- The dashboard: browsers that signed in (only a hash of a session's secret is kept), and the latest sessions of all projects.

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

CREATE INDEX ledgers_by_age ON ledgers (last_at);
CREATE INDEX agent_sessions_by_age ON agent_sessions (seen_at);
CREATE INDEX connections_by_age ON connections (seen_at, id);
