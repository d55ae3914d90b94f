-- Text is indexed as reasoning/fulltext.py folds it, the same on both engines, in batches and from nothing. A table of its
-- own, because a backup copies the columns that both engines have.

ALTER TABLE thoughts DROP COLUMN search;
CREATE TABLE thoughts_fts (
    row_id BIGINT NOT NULL PRIMARY KEY REFERENCES thoughts (row_id) ON DELETE CASCADE,
    words tsvector NOT NULL
);
CREATE INDEX thoughts_fts_words ON thoughts_fts USING gin (words);

ALTER TABLE history_lines DROP COLUMN search;
CREATE TABLE history_fts (
    row_id BIGINT NOT NULL PRIMARY KEY REFERENCES history_lines (row_id) ON DELETE CASCADE,
    words tsvector NOT NULL
);
CREATE INDEX history_fts_words ON history_fts USING gin (words);
