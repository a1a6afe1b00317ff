"""`python -m skillhall` is the command line."""

from skillhall._internal.cli.main import start

start()
