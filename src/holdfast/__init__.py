"""Holdfast keeps a coding agent's sessions alive across everything that ends them."""
