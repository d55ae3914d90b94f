-- Work that is no longer told as open, why and since when; the next line of its transcript takes that back.

ALTER TABLE ledgers ADD COLUMN settled TEXT;
ALTER TABLE ledgers ADD COLUMN settled_at BIGINT;
CREATE INDEX ledgers_unsettled_by_root ON ledgers (root, last_at) WHERE settled_at IS NULL;
CREATE INDEX ledgers_unsettled_by_key ON ledgers (project_key, last_at) WHERE settled_at IS NULL;

-- The first commit of a repository, by which a project is known again that was moved.
ALTER TABLE projects ADD COLUMN first_commit TEXT;
CREATE INDEX projects_by_first_commit ON projects (first_commit) WHERE first_commit IS NOT NULL;
