-- How many messages of a target are held: every page that shows queues asks for it.

CREATE INDEX bridge_held ON bridge_messages (target) WHERE status = 'held';
