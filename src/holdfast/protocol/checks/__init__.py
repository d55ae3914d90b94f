"""The checks that a gate can be made of."""
