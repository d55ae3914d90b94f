-- Further roots that a reasoning session belongs to, beside the one it was begun in: it is recovered from each.

CREATE TABLE session_roots (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    root_uri TEXT NOT NULL,
    project_key TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (session_id, root_uri)
);
CREATE INDEX session_roots_by_root ON session_roots (root_uri);
