-- Full-text search on SQLite: an index without a copy of the text, kept level by triggers. The first 200,000 characters count.

CREATE VIRTUAL TABLE thoughts_fts USING fts5 (content, content='', contentless_delete=1, tokenize='unicode61');
CREATE TRIGGER thoughts_fts_insert AFTER INSERT ON thoughts BEGIN
    INSERT INTO thoughts_fts (rowid, content) VALUES (new.row_id, substr(new.content, 1, 200000));
END;
CREATE TRIGGER thoughts_fts_delete AFTER DELETE ON thoughts BEGIN
    DELETE FROM thoughts_fts WHERE rowid = old.row_id;
END;
INSERT INTO thoughts_fts (thoughts_fts, rank) VALUES ('secure-delete', 1);
