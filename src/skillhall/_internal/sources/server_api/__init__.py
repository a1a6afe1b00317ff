"""Client for another Skillhall server."""
