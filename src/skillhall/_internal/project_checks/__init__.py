"""All checks of a project in one run: validate, scan, verify and evals."""
