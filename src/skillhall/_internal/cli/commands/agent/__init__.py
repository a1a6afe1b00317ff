"""Use skills with a model."""
