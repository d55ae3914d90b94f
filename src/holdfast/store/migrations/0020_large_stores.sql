-- Pages of large stores. The shape of a session with very many branches or revisions: those of a range of its numbers,
-- from indexes alone; its branches by age, and by where they leave.

CREATE INDEX thoughts_branched ON thoughts (session_id, number, branch_id) WHERE branch_id IS NOT NULL;
CREATE INDEX thoughts_revisions ON thoughts (session_id, number, revises) WHERE revises IS NOT NULL;
CREATE INDEX branches_by_age ON branches (session_id, created_at, branch_id);
CREATE INDEX branches_by_start ON branches (session_id, from_number, created_at, branch_id);

-- The sessions that were used last, of all projects.
CREATE INDEX sessions_by_age ON sessions (updated_at, id);
