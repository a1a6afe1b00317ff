"""Config files as nodes that know their lines, for precise error messages."""
