"""Install skills."""
