-- What was said in agents' conversations before Holdfast was there, or without it: imported because a person asked for
-- it, redacted, found by its words. A file is read from where reading ended.

CREATE TABLE history_files (
    row_id {autoid},
    machine TEXT NOT NULL,
    path TEXT NOT NULL,
    session_id TEXT NOT NULL,
    root TEXT NOT NULL,
    mark TEXT NOT NULL,
    read_to BIGINT NOT NULL,
    at BIGINT NOT NULL,
    UNIQUE (machine, path)
);

CREATE TABLE history_lines (
    row_id {autoid},
    file BIGINT NOT NULL REFERENCES history_files (row_id) ON DELETE CASCADE,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX history_lines_by_file ON history_lines (file);
