"""Editable skills of a server or run directory."""
