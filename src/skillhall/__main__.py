"""`python -m skillhall` is the command line."""

from skillhall._internal.cli.main import run_and_exit

run_and_exit()
