"""Git repositories by the git program."""
