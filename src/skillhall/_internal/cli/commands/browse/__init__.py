"""Find and read skills."""
