"""Identity: who is asking, for which teams, and which project a root stands for."""
