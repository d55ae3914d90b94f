"""What an agent spawns: the stdio relay and the hook client, standard library only."""
