"""Runs the command line as `python -m skillhall`."""

from skillhall._internal.cli.main import run_and_exit

run_and_exit()
