"""Backups of everything that a server keeps: making, restoring and comparing them."""
