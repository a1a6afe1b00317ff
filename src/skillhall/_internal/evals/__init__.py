"""Evals of skills: run test cases, grade outputs, compare and report results."""
