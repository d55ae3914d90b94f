"""Git, asked so that nothing a repository brings is executed."""
