"""Logins that the user stored for other programs."""
