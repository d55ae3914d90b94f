"""`holdfast demo`: an agent and the daemon are killed, and the next agent is told everything. All of it real."""
