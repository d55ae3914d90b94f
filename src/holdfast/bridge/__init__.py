"""Bridge: a durable queue per target, restarts noticed, tasks resumed."""
