"""Playground pages."""
