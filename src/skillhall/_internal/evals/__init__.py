"""Evals of skills: run test cases, grade the outputs, compare and report the results."""
