"""Git repositories, read with git."""
