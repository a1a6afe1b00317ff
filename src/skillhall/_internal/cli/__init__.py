"""The command line. Commands import their modules when they run, so that startup stays fast."""
