"""Skills of installed Python packages."""
