"""Text for models and scripts, rendered from skills by pure functions."""
