"""Git, run so that nothing that a repository contains is executed."""
