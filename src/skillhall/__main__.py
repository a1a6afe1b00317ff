"""`python -m skillhall` is the command line."""

from skillhall.surfaces.cli.entry import start

start()
