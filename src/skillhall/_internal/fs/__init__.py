"""Safe file access."""
