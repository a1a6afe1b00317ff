"""Uploaded sources."""
