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

-- The shape of a session without its texts: where its branches are, and what was revised.
CREATE INDEX thoughts_on_branches ON thoughts (session_id, branch_id, number) WHERE branch_id IS NOT NULL;
CREATE INDEX thoughts_revising ON thoughts (session_id, revises, number) WHERE revises IS NOT NULL;

-- Figures of teams and of what agents got back, from these indexes alone: the rows hold long texts.
CREATE INDEX asks_by_time ON asks
    (created_at, conversation_id, status, input_tokens, output_tokens, cost_microusd, duration_ms);
CREATE INDEX conversations_by_use ON conversations (last_used_at, id);
CREATE INDEX ledgers_by_session ON ledgers (session_id, last_at);
