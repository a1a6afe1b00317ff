"""Commands that use skills with a model."""
