"""Internal modules, without a promise of stability."""
