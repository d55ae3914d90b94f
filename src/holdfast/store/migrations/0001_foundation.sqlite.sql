-- Full-text search on SQLite: an index without a copy of the text. Thoughts enter it in batches, by reasoning/search.py,
-- because an insert per transaction would cost a sixth of recording a thought; they leave it with their row.

CREATE VIRTUAL TABLE thoughts_fts USING fts5 (content, content='', contentless_delete=1, tokenize='unicode61');
CREATE TRIGGER thoughts_fts_delete AFTER DELETE ON thoughts BEGIN
    DELETE FROM thoughts_fts WHERE rowid = old.row_id;
END;
INSERT INTO thoughts_fts (thoughts_fts, rank) VALUES ('secure-delete', 1);
