"""The daemon: start, stop, its unix socket, its background loops, and a newer version taking over."""
