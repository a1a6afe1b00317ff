"""Sources in git repositories, read with the `git` command."""
