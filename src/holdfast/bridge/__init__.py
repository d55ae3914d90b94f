"""The bridge: a durable queue per target, restart detection, resumable tasks."""
