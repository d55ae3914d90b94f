"""Programs that an agent spawns: the stdio relay and the hook client, standard library only."""
