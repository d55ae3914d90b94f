"""The ledger: what an agent session did, read from its transcript and from git."""
