"""Folders on disk."""
