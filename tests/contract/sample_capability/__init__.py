"""A room that Holdfast does not have: who was greeted."""
