"""How fast Holdfast is, side by side with the server it replaces: `make bench`."""
