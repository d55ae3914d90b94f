-- Text is indexed as reasoning/fulltext.py folds it, the same on both engines; it enters again in batches, from nothing.

INSERT INTO thoughts_fts (thoughts_fts) VALUES ('delete-all');
INSERT INTO history_fts (history_fts) VALUES ('delete-all');
