"""Text for models and scripts, rendered from skills. Pure."""
