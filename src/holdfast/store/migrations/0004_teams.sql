-- Conversations between teams, the asks in them, notices, and permission requests of managed agents.
-- A sender from outside is '' (never NULL: UNIQUE takes NULLs for different).

CREATE TABLE conversations (
    id {autoid},
    from_team TEXT NOT NULL,
    to_team TEXT NOT NULL,
    thread TEXT NOT NULL,
    session_id TEXT NOT NULL UNIQUE,
    begun INTEGER NOT NULL,
    status TEXT NOT NULL,
    message_count BIGINT NOT NULL,
    compacted_count BIGINT NOT NULL,
    note TEXT,
    fork_of TEXT,
    summary TEXT,
    lease_by TEXT,
    lease_until BIGINT,
    agent_pid BIGINT,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    last_started_at BIGINT NOT NULL,
    UNIQUE (from_team, to_team, thread)
);

CREATE TABLE asks (
    row_id {autoid},
    id TEXT NOT NULL UNIQUE,
    conversation_id BIGINT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    to_team TEXT NOT NULL,
    text TEXT NOT NULL,
    chain TEXT NOT NULL,
    parent TEXT,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    lease_by TEXT,
    lease_token TEXT,
    lease_until BIGINT,
    answer TEXT,
    error_code TEXT,
    error TEXT,
    note TEXT,
    duration_ms BIGINT,
    cost_microusd BIGINT,
    input_tokens BIGINT,
    output_tokens BIGINT,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);
CREATE INDEX asks_open ON asks (status, row_id) WHERE status IN ('waiting', 'running');
CREATE INDEX asks_by_conversation ON asks (conversation_id, row_id);
CREATE INDEX asks_by_team ON asks (to_team, finished_at);

CREATE TABLE notices (
    row_id {autoid},
    id TEXT NOT NULL UNIQUE,
    from_team TEXT NOT NULL,
    to_team TEXT NOT NULL,
    text TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    shown_at BIGINT
);
CREATE INDEX notices_unseen ON notices (to_team, row_id) WHERE shown_at IS NULL;

CREATE TABLE permissions (
    row_id {autoid},
    id TEXT NOT NULL UNIQUE,
    ask_id TEXT NOT NULL,
    team TEXT NOT NULL,
    tool TEXT NOT NULL,
    input TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    allowed INTEGER,
    decided_at BIGINT
);
