-- The bridge: a queue per target, what happened there as updates, who was at work there, and what on.

CREATE TABLE bridge_targets (
    target TEXT NOT NULL PRIMARY KEY,
    incarnation BIGINT,
    last_seen_at BIGINT
);

CREATE TABLE bridge_messages (
    row_id {autoid},
    id TEXT NOT NULL,
    target TEXT NOT NULL,
    seq BIGINT NOT NULL,
    text TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sender TEXT NOT NULL,
    source TEXT NOT NULL,
    priority INTEGER NOT NULL,
    reply_to TEXT,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    lease_by TEXT,
    lease_until BIGINT,
    way TEXT,
    outcome TEXT,
    reply TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    finished_at BIGINT,
    UNIQUE (id, target),
    UNIQUE (target, seq)
);
-- Every page that a commit changes is written, so one index serves who takes, who counts, who looks for the same text or
-- for what has expired, and who has what.
CREATE INDEX bridge_open ON bridge_messages (status, target, priority DESC, seq, expires_at, fingerprint, sender)
    WHERE status = 'pending' OR status = 'leased';
CREATE INDEX bridge_dead ON bridge_messages (target) WHERE status = 'dead';

CREATE TABLE bridge_updates (
    target TEXT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    message_id TEXT,
    content TEXT NOT NULL,
    data TEXT NOT NULL,
    chat_only INTEGER NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (target, seq)
);

CREATE TABLE bridge_incarnations (
    row_id {autoid},
    target TEXT NOT NULL,
    session_id TEXT NOT NULL,
    previous TEXT,
    source TEXT NOT NULL,
    started_at BIGINT NOT NULL
);
CREATE INDEX bridge_incarnations_by_target ON bridge_incarnations (target, row_id);

CREATE TABLE bridge_tasks (
    target TEXT NOT NULL PRIMARY KEY,
    session_id TEXT,
    current_task TEXT NOT NULL,
    current_task_id TEXT,
    last_completed_step TEXT,
    pending_messages TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    decision TEXT
);

CREATE TABLE bridge_chats (
    transport TEXT NOT NULL,
    target TEXT NOT NULL,
    sent_seq BIGINT NOT NULL,
    sending_seq BIGINT,
    failure TEXT,
    attempts BIGINT NOT NULL,
    next_at BIGINT NOT NULL,
    PRIMARY KEY (transport, target)
);

CREATE TABLE bridge_received (
    transport TEXT NOT NULL,
    account TEXT NOT NULL,
    update_id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (transport, account, update_id)
);

CREATE TABLE leases (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    until BIGINT NOT NULL
);
