"""Copies among skills: equal, nearly equal and overlapping ones."""
