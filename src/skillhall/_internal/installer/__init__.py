"""Installed skills of a project or user."""
