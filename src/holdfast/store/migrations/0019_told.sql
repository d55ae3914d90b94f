-- What an agent knew and was told when it began anew, for the latest of each project; how large its conversation was then.

ALTER TABLE recoveries ADD COLUMN content TEXT;
ALTER TABLE recoveries ADD COLUMN size BIGINT;
CREATE INDEX recoveries_by_root ON recoveries (root, row_id);
CREATE INDEX recoveries_by_session ON recoveries (session_id, row_id);
CREATE INDEX recoveries_by_recovered ON recoveries (recovered, row_id) WHERE recovered IS NOT NULL;
