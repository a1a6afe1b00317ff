"""The command line.

The modules of a command are imported when it runs, so that startup stays fast.
"""
