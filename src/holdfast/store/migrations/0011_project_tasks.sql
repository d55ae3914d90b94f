-- What an agent works on in a project that is no target's, as it told by save_task; a finished task has no row.

CREATE TABLE project_tasks (
    root TEXT NOT NULL,
    owner TEXT NOT NULL,
    project_key TEXT,
    session_id TEXT,
    current_task TEXT NOT NULL,
    current_task_id TEXT,
    last_completed_step TEXT,
    pending_messages TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (root, owner)
);
CREATE INDEX project_tasks_by_key ON project_tasks (project_key, updated_at);
