-- The teams that a key is limited to, as a JSON list; NULL where it is not limited.
ALTER TABLE api_keys ADD COLUMN teams TEXT;
