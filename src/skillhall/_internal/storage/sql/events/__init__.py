"""Events: the log of changes that servers of one database read."""
