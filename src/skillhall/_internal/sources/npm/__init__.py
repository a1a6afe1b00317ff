"""Skills in npm packages."""
