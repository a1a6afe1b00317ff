"""Session endpoints."""
