"""`holdfast doctor`: the whole chain from agent to store looked at as it is installed, each fault with its repair."""
