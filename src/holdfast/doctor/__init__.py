"""`holdfast doctor`: checks the whole chain from agent to store as it is installed, with a repair for each fault."""
