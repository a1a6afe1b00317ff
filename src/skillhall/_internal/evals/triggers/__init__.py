"""Trigger evals: which skill an agent loads for a query, measured with all of its skills."""
