-- An agent that is idle at its terminal: where its transcript is, what its owner was asked and decided, and which messages
-- a copy of its conversation answered that it was not told of yet.

ALTER TABLE bridge_incarnations ADD COLUMN transcript TEXT;
ALTER TABLE bridge_incarnations ADD COLUMN question TEXT;
ALTER TABLE bridge_incarnations ADD COLUMN decision TEXT;
CREATE INDEX bridge_copied ON bridge_messages (target) WHERE way = 'copy' OR way = 'copy-told';
