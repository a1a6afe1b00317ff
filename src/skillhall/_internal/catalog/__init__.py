"""The snapshot: sources and a profile in, one ordered, immutable catalog out."""
