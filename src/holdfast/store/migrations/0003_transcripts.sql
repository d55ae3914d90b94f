-- Agents' transcripts, line by line, so that a conversation outlives its files, its configuration directory and its machine.
-- A line with a uuid is kept once; lines without one (titles, modes) may repeat.

CREATE TABLE transcript_lines (
    row_id {autoid},
    project_key TEXT NOT NULL,
    session_id TEXT NOT NULL,
    subpath TEXT NOT NULL,
    uuid TEXT,
    entry TEXT NOT NULL,
    at BIGINT NOT NULL
);
CREATE INDEX transcript_lines_by_session ON transcript_lines (session_id, subpath, row_id);
CREATE INDEX transcript_lines_by_project ON transcript_lines (project_key, session_id, subpath);
CREATE UNIQUE INDEX transcript_lines_once ON transcript_lines (project_key, session_id, subpath, uuid)
    WHERE uuid IS NOT NULL;
