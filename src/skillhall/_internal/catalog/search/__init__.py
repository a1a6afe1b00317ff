"""Search over the skills of a catalog."""
