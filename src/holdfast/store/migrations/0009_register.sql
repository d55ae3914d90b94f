-- The register of reasoning sessions: which there ever were, and a count and a sum of their heads, so that one that is
-- missing as a whole is noticed and has a name. A session that was forgotten leaves its id and its last hash, which count
-- on in the sum. `epoch` names this store: a restored one is another.

CREATE TABLE session_register (
    id TEXT NOT NULL PRIMARY KEY,
    gone TEXT,
    gone_at BIGINT,
    hash TEXT
);
INSERT INTO session_register (id) SELECT id FROM sessions;

ALTER TABLE event_head ADD COLUMN sessions BIGINT NOT NULL DEFAULT 0;
ALTER TABLE event_head ADD COLUMN heads_sum BIGINT NOT NULL DEFAULT 0;
ALTER TABLE event_head ADD COLUMN epoch TEXT NOT NULL DEFAULT '';
UPDATE event_head SET sessions = (SELECT count(*) FROM session_register);
