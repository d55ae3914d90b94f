-- Events, once-only calls, connections, projects, reasoning sessions.
-- Written once for both engines: times are integers (ms), JSON is text, ids are text; {autoid} is the engine's row id,
-- {bigkey} a numeric key that is given (on SQLite the row id itself, which saves an index).

CREATE TABLE event_head (
    id INTEGER PRIMARY KEY,
    seq BIGINT NOT NULL
);
INSERT INTO event_head (id, seq) VALUES (1, 0);

CREATE TABLE events (
    seq {bigkey},
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    data TEXT NOT NULL
);
-- Whoever forgets a reasoning session looks for what was told of it; nothing else is looked for by its subject.
CREATE INDEX events_of_reasoning ON events (subject, seq) WHERE kind LIKE 'reasoning.%';

CREATE TABLE calls (
    caller TEXT NOT NULL,
    call_key TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    result TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (caller, call_key, tool, arguments)
);

CREATE TABLE daemons (
    id TEXT NOT NULL PRIMARY KEY,
    lease_until BIGINT NOT NULL
);

CREATE TABLE connections (
    id TEXT NOT NULL PRIMARY KEY,
    identity TEXT UNIQUE,
    transport TEXT NOT NULL,
    era TEXT NOT NULL,
    client_name TEXT,
    client_version TEXT,
    agent_session TEXT,
    bound_root TEXT,
    reasoning_session TEXT,
    joined INTEGER NOT NULL DEFAULT 0,
    attached_by TEXT,
    pid BIGINT,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL
);
CREATE INDEX connections_by_session ON connections (reasoning_session);
CREATE INDEX connections_attached ON connections (attached_by) WHERE attached_by IS NOT NULL;

CREATE TABLE projects (
    root_uri TEXT NOT NULL PRIMARY KEY,
    project_key TEXT,
    paused_at BIGINT
);
CREATE INDEX projects_by_key ON projects (project_key);

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT NOT NULL,
    tags TEXT NOT NULL,
    domain TEXT,
    status TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    root_uri TEXT,
    project_key TEXT,
    thought_count BIGINT NOT NULL,
    branch_count BIGINT NOT NULL,
    head_hash TEXT NOT NULL,
    damage TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    archived_at BIGINT,
    deleted_at BIGINT
);
CREATE INDEX sessions_by_root ON sessions (root_uri, status, updated_at);
CREATE INDEX sessions_by_project ON sessions (project_key, status, updated_at) WHERE project_key IS NOT NULL;
CREATE INDEX sessions_pinned ON sessions (root_uri, status, updated_at) WHERE pinned = 1;

CREATE TABLE session_links (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    linked_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    at BIGINT NOT NULL,
    PRIMARY KEY (session_id, linked_id)
);

CREATE TABLE branches (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    branch_id TEXT NOT NULL,
    from_number BIGINT NOT NULL,
    thought_count BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, branch_id)
);

CREATE TABLE thoughts (
    row_id {autoid},
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    content TEXT NOT NULL,
    next_needed INTEGER NOT NULL,
    total BIGINT,
    revises BIGINT,
    is_revision INTEGER NOT NULL,
    branch_id TEXT,
    branch_from BIGINT,
    needs_more INTEGER NOT NULL,
    requested_number BIGINT,
    connection_id TEXT,
    created_at BIGINT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (session_id, number)
);
