"""Agent config files."""
