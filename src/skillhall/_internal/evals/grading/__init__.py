"""Graders of runs: checks, scripts and a model as judge."""
