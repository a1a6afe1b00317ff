"""Commands that find and read skills."""
