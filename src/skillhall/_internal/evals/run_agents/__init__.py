"""Agents that can do the runs of an eval: the built-in one, and external commands."""
