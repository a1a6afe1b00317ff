"""Write and check skills."""
