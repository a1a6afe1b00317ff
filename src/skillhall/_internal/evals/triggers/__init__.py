"""Trigger evals: which skill an agent with all its skills loads for a query."""
