"""Functions of the founding designs, thin over the core."""
