"""Text for models and scripts, rendered from skills. Pure: reads and decides nothing."""
