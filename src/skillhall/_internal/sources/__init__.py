"""Sources of skills: each kind yields bundles. Untrusted input enters here."""
