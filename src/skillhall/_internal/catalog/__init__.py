"""Catalog: skills in folders, loaded with a profile, and access to their content."""
