"""Everything else; no stability promise."""
