"""Runs of eval cases: plan, folders, limits, stored results and the runner."""
