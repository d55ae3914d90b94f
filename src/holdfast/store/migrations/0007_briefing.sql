-- What agents really did, as their transcripts tell; which of their sessions were seen, and what each was told.

CREATE TABLE agent_sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    project_key TEXT,
    machine TEXT NOT NULL,
    pid BIGINT,
    pid_mark TEXT,
    transcript TEXT,
    source TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    ended_at BIGINT,
    end_reason TEXT,
    alive_until BIGINT,
    told TEXT
);
CREATE INDEX agent_sessions_by_root ON agent_sessions (root, seen_at);
CREATE INDEX agent_sessions_by_key ON agent_sessions (project_key, seen_at);
CREATE INDEX agent_sessions_unended ON agent_sessions (machine, seen_at) WHERE ended_at IS NULL;

CREATE TABLE ledgers (
    session_id TEXT NOT NULL PRIMARY KEY,
    root TEXT NOT NULL,
    project_key TEXT,
    machine TEXT NOT NULL,
    transcript TEXT NOT NULL,
    file_mark TEXT NOT NULL,
    read_to BIGINT NOT NULL,
    content TEXT NOT NULL,
    last_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX ledgers_by_root ON ledgers (root, last_at);
CREATE INDEX ledgers_by_key ON ledgers (project_key, last_at);

CREATE TABLE forgotten_projects (
    mark TEXT NOT NULL PRIMARY KEY,
    at BIGINT NOT NULL
);

CREATE TABLE recoveries (
    row_id {autoid},
    root TEXT NOT NULL,
    session_id TEXT NOT NULL,
    recovered TEXT,
    occasion TEXT NOT NULL,
    what TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX recoveries_by_time ON recoveries (at);
