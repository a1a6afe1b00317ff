"""Playground."""
