"""Processes for eval runs: bounded ones, and a sandbox for the scripts of skills."""
