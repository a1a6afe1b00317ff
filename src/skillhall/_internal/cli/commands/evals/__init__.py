"""Commands on the evals of skills, one module for each."""
