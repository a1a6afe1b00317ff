"""Implementations behind the public names."""
