"""Commands that create and check skills."""
