"""Client of another Skillhall server."""
