"""The functions of the founding designs, on top of the core."""
