"""GitHub without git."""
