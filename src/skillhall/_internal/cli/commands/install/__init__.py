"""Commands that install skills."""
