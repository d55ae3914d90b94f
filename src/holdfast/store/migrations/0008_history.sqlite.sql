-- As with thoughts: an index without a copy of the text, filled in batches, by history/queries.py.

CREATE VIRTUAL TABLE history_fts USING fts5 (content, content='', contentless_delete=1, tokenize='unicode61');
CREATE TRIGGER history_fts_delete AFTER DELETE ON history_lines BEGIN
    DELETE FROM history_fts WHERE rowid = old.row_id;
END;
INSERT INTO history_fts (history_fts, rank) VALUES ('secure-delete', 1);
