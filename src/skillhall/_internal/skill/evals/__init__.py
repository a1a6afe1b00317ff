"""Evals of a skill: test cases and trigger queries in its folder `evals`."""
