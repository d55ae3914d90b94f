-- When a caller came into its session: of two live ones in the same, the later is the one that was given it.

ALTER TABLE connections ADD COLUMN session_since BIGINT;
