"""GitHub repositories, read without git."""
