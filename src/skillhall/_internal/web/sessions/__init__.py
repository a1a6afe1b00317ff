"""Session pages."""
