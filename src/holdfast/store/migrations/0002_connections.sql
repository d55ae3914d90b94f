-- Connections that can be taken up again: states, reconnect tokens, keys, audit and usage.

ALTER TABLE connections ADD COLUMN state TEXT NOT NULL DEFAULT 'active';
ALTER TABLE connections ADD COLUMN principal TEXT;
ALTER TABLE connections ADD COLUMN root_uri TEXT;
ALTER TABLE connections ADD COLUMN reconnect_count BIGINT NOT NULL DEFAULT 0;
CREATE INDEX connections_by_state ON connections (state, seen_at);

CREATE TABLE tokens (
    jti TEXT NOT NULL PRIMARY KEY,
    connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
    hash TEXT NOT NULL UNIQUE,
    kid TEXT NOT NULL,
    issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    retired_at BIGINT,
    successor TEXT,
    revoked_at BIGINT
);
CREATE INDEX tokens_by_connection ON tokens (connection_id);

CREATE TABLE api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE TABLE audit (
    row_id {autoid},
    at BIGINT NOT NULL,
    action TEXT NOT NULL,
    outcome TEXT NOT NULL,
    connection_id TEXT,
    address TEXT,
    client TEXT,
    principal TEXT,
    times BIGINT NOT NULL
);
CREATE INDEX audit_by_connection ON audit (connection_id, row_id);

CREATE TABLE requests (
    row_id {autoid},
    connection_id TEXT,
    tool TEXT NOT NULL,
    at BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    outcome TEXT NOT NULL
);
CREATE INDEX requests_by_connection ON requests (connection_id, row_id);
CREATE INDEX requests_by_age ON requests (at);
