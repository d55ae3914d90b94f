"""`holdfast demo`: kills a real agent and a real daemon, and shows that the next agent is told everything."""
