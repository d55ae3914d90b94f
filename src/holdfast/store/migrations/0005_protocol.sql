-- Runs of a protocol: what was seen, what the gates said, what was violated; and which projects are trusted.

CREATE TABLE protocol_runs (
    row_id {autoid},
    id TEXT NOT NULL,
    day TEXT NOT NULL,
    number BIGINT NOT NULL,
    root TEXT NOT NULL,
    project TEXT NOT NULL,
    protocol TEXT NOT NULL,
    definition TEXT NOT NULL,
    objective TEXT NOT NULL,
    branch TEXT,
    starting_commit TEXT,
    phase TEXT NOT NULL,
    held_from TEXT,
    held_by TEXT,
    status TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    touched_at BIGINT NOT NULL,
    ended_at BIGINT,
    end_commit TEXT,
    summary TEXT,
    decisions TEXT,
    notes TEXT,
    UNIQUE (project, day, number)
);
CREATE UNIQUE INDEX protocol_active ON protocol_runs (root) WHERE status = 'active';
CREATE INDEX protocol_history ON protocol_runs (project, row_id);

CREATE TABLE protocol_gates (
    run BIGINT NOT NULL REFERENCES protocol_runs (row_id) ON DELETE CASCADE,
    gate TEXT NOT NULL,
    status TEXT NOT NULL,
    evidence TEXT NOT NULL,
    fingerprint TEXT,
    checked_at BIGINT NOT NULL,
    PRIMARY KEY (run, gate)
);

CREATE TABLE protocol_evidence (
    row_id {autoid},
    run BIGINT NOT NULL REFERENCES protocol_runs (row_id) ON DELETE CASCADE,
    gate TEXT,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL,
    source TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX protocol_evidence_by_run ON protocol_evidence (run, kind, subject);

CREATE TABLE protocol_violations (
    row_id {autoid},
    run BIGINT NOT NULL REFERENCES protocol_runs (row_id) ON DELETE CASCADE,
    at BIGINT NOT NULL,
    phase TEXT NOT NULL,
    requirement TEXT NOT NULL,
    severity TEXT NOT NULL,
    gate TEXT,
    recovery TEXT
);
CREATE INDEX protocol_violations_by_run ON protocol_violations (run, row_id);

CREATE TABLE protocol_trust (
    root TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL,
    at BIGINT NOT NULL
);

CREATE TABLE protocol_mirror (
    root TEXT NOT NULL PRIMARY KEY,
    wanted BIGINT NOT NULL,
    done BIGINT NOT NULL,
    place TEXT,
    failure TEXT,
    at BIGINT NOT NULL
);
