"""Backups of a server's data: creating, restoring and comparing them."""
