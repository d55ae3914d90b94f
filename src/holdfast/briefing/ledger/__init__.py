"""The ledger: what an agent really did, as its transcript tells."""
