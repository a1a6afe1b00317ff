"""Checking and creating skills."""
