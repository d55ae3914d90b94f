-- Every thought asks whether its project is paused; few projects ever are.

CREATE INDEX projects_paused ON projects (root_uri, project_key) WHERE paused_at IS NOT NULL;
