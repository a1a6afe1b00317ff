"""Accounts of users: their rows, roles, passwords and links."""
