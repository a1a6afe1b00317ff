"""Publishing of skills: folders, packages and repositories that others install from."""
