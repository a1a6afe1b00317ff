"""Evals of a skill: test cases and trigger queries, as files in its folder `evals`."""
